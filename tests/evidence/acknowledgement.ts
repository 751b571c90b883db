// Revocations that are confirmed: no request that is sent after the answer gets the old target, whichever process it
// reaches. Each control takes a rule away from around the service, and shows who would be told too early.
import { startFaultProxy, waitFor } from "@linkfence/testkit";
import { fenceMs, silenceMs } from "../../services/write/src/domain/fence.ts";
import type { RedirectProcess, Visit } from "./redirect-process.ts";
import { ask, oldAfter, type Registered, withRegistered } from "./registered.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { spread } from "./revocation-windows.ts";

type CutOff = {
  at: Registered;
  /** The process that is cut off. */
  redirect: RedirectProcess;
  /** Of the links it is asked for the first, without a break, until `stop`. */
  codes: readonly string[];
  stop: () => Promise<Visit[]>;
};

/**
 * Runs a scenario with two registered processes, of which one is cut off from the database while it is asked for a link: what
 * is sent in either direction vanishes.
 */
function withOneCutOff(ttlMs: number, scenario: (cutOff: CutOff) => Promise<void>) {
  return withRegistered({ redirects: 1, ttlMs, env: { QUERY_TIMEOUT_MS: "300" } }, async (at) => {
    const proxy = await startFaultProxy(Number(new URL(at.databaseUrl).port));
    const redirect = await at.add({}, proxy.through(at.databaseUrl));
    await waitFor("two processes in the registry", async () => (await at.addresses()).length === 2);
    const codes = await at.create("cut-", 2);
    const stop = await ask([redirect], codes[0] ?? "");
    // What is committed in the quarter of a TTL after its last renewal takes effect before its row may leave the registry.
    const renewals = await redirect.metric("linkfence_renewals_total");
    await waitFor("a renewal", async () => (await redirect.metric("linkfence_renewals_total")) > renewals);
    proxy.set("hang");
    await scenario({ at, redirect, codes, stop });
    await proxy.close();
  });
}

const addressOf = ({ service }: RedirectProcess) => new URL(service.url).port;

/** Revokes links one after the other while every process is asked for them. Returns how long each confirmation took. */
async function revokeAsked(report: Report, at: Registered, codes: readonly string[], query: string) {
  const times: number[] = [];
  let old = 0;
  let confirmed = 0;
  for (const code of codes) {
    const stop = await ask(at.redirects, code);
    const { effective, sentAt, answeredAt } = await at.revoke(code, query);
    const gone = at.redirects.map(({ status }) => waitFor("410", async () => (await status(code)) === 410));
    await Promise.all(gone);
    old += oldAfter(await stop(), answeredAt);
    if (
      effective.confirmed &&
      effective.by === "acknowledged" &&
      effective.instances.acknowledged === at.redirects.length
    )
      confirmed += 1;
    times.push(answeredAt - sentAt);
  }
  report.note(`answers: ${spread(times)}`);
  return { times, old, confirmed };
}

const slowPolls = { POLL_INTERVAL_MS: "500", LISTEN_ENABLED: "false" };

export const q1: EvidenceCase = {
  id: "Q1",
  shows:
    "a revocation is confirmed when every process has acknowledged it, and no request sent after that gets the old target",
  run: (report) =>
    withRegistered({ redirects: 3, ttlMs: 60_000 }, async (at) => {
      const codes = await at.create("fast-", 50);
      const fast = await revokeAsked(report, at, codes, "");
      report.check("confirmed by all three", fast.confirmed, codes.length);
      report.check("old target to a request sent after the confirmation", fast.old, 0);
      report.figure(`${spread(fast.times)} to the answer (${codes.length} revocations, 3 processes)`);
    }),
};

export const q1c: EvidenceCase = {
  id: "Q1c",
  shows: "where the commit alone is waited for, requests sent after the answer get the old target",
  control: true,
  run: (report) =>
    withRegistered({ redirects: 3, ttlMs: 60_000, env: slowPolls }, async (at) => {
      const { old } = await revokeAsked(report, at, await at.create("slow-", 3), "?wait=committed");
      report.check("requests after the answer got the old target", old > 0, true);
    }),
};

const CUT_TTL_MS = 2000;
/** Its quarter is longer than a busy machine takes from a renewal to the commit of a revocation. */
const NAMED_TTL_MS = 6000;

export const q2: EvidenceCase = {
  id: "Q2",
  shows:
    "a process that is cut off is named in a 202, and is waited for until it can answer nothing from memory; then the revocation is confirmed by time",
  run: (report) =>
    withOneCutOff(NAMED_TTL_MS, async ({ at, redirect, codes: [code = ""], stop }) => {
      const early = await at.revoke(code, "?timeoutMs=1000");
      report.check("the first answer", [early.status, early.effective.confirmed], [202, false]);
      report.check(
        "who is missing",
        early.effective.missing?.map((address) => address.split(":").at(-1)),
        [addressOf(redirect)],
      );
      const within = early.effective.effectiveWithinMs ?? Number.POSITIVE_INFINITY;
      report.check("it is in force within the TTL and what clocks may differ", within <= fenceMs(NAMED_TTL_MS), true);
      const late = await at.revoke(code, "?timeoutMs=10000");
      report.check(
        "the answer to who waits on",
        [late.status, late.effective.confirmed, late.effective.by],
        [200, true, "ttl"],
      );
      const visits = await stop();
      const after = visits.filter(({ sentAt }) => sentAt > late.answeredAt);
      report.check("old target to a request sent after the confirmation", oldAfter(visits, late.answeredAt), 0);
      report.note(
        `${after.length} requests after the confirmation, ${oldAfter(visits, early.answeredAt)} redirects after the 202`,
      );
    }),
};

/** What an impatient judge would do to a process that it does not hear of. */
const forget = (at: Registered, redirect: RedirectProcess) =>
  at.sql`DELETE FROM redirect_instance WHERE address LIKE ${`%:${addressOf(redirect)}`}`;

export const q2c: EvidenceCase = {
  id: "Q2c",
  shows:
    "where the row of a process that is cut off is removed at once, the revocation is confirmed and it goes on with the old target",
  control: true,
  run: (report) =>
    withOneCutOff(CUT_TTL_MS, async ({ at, redirect, codes: [code = ""], stop }) => {
      await forget(at, redirect);
      const { effective, answeredAt } = await at.revoke(code);
      report.check("it is confirmed", [effective.confirmed, effective.by], [true, "acknowledged"]);
      await waitFor("the old target", async () => (await redirect.visit(code)).status !== 302);
      report.check("requests after the confirmation got the old target", oldAfter(await stop(), answeredAt) > 0, true);
    }),
};

export const q3: EvidenceCase = {
  id: "Q3",
  shows:
    "a killed process leaves the registry when it can answer nothing any more, by the judge's own clock; until then it is waited for, and then nobody waits",
  run: (report) =>
    withRegistered({ redirects: 2, ttlMs: CUT_TTL_MS }, async (at) => {
      const [, killed] = at.redirects;
      const [first = "", second = ""] = await at.create("kill-", 2);
      killed?.service.kill("SIGKILL");
      const killedAt = performance.now();
      const early = await at.revoke(first, "?timeoutMs=100");
      report.check("the answer right after the kill", early.status, 202);
      const missing = (early.effective.missing ?? []).map((address) => address.split(":").at(-1));
      report.check("it names the one that was killed", killed && missing.includes(addressOf(killed)), true);
      await waitFor("the registry without it", async () => (await at.addresses()).length === 1);
      const goneMs = performance.now() - killedAt;
      // It renewed its row a quarter of its TTL before the kill at the earliest.
      report.check(
        "it stood there until it could answer nothing",
        goneMs >= silenceMs(CUT_TTL_MS) - CUT_TTL_MS / 4,
        true,
      );
      const late = await at.revoke(second);
      report.check(
        "the next one",
        [late.status, late.effective.by, late.effective.instances.total],
        [200, "acknowledged", 1],
      );
      report.figure(`gone from the registry ${goneMs.toFixed(0)} ms after the kill (TTL ${CUT_TTL_MS} ms)`);
    }),
};

/** Much longer than the write process takes to start, since that is when it begins to watch. */
const RESTART_TTL_MS = 6000;

export const q4: EvidenceCase = {
  id: "Q4",
  shows:
    "in a history that is not settled, as after a failover that lost the registry, nothing is confirmed before time has passed, though nobody is missing; when it was watched for long enough, acknowledgements confirm again",
  run: (report) =>
    withOneCutOff(RESTART_TTL_MS, async ({ at, redirect, codes: [lost = "", later = ""], stop }) => {
      // One that has watched this history for long enough would settle it again at once.
      await at.restartWrite(async () => {
        await at.sql`DELETE FROM settled_epoch`;
        await forget(at, redirect);
      });
      const early = await at.revoke(lost, "?timeoutMs=1000");
      report.check(
        "the first answer, though nobody is missing",
        [early.status, early.effective.confirmed, early.effective.missing],
        [202, false, []],
      );
      const { effective, answeredAt } = await at.revoke(lost, "?timeoutMs=10000");
      report.check("confirmed to who waits on", effective.confirmed, true);
      report.check("old target to a request sent after the confirmation", oldAfter(await stop(), answeredAt), 0);
      const settled = async () => (await at.api<{ settled: boolean }>("GET", "/v1/instances")).json.settled;
      await waitFor("a settled history", settled);
      const again = await at.revoke(later);
      report.check("the next one", [again.status, again.effective.by], [200, "acknowledged"]);
    }),
};
