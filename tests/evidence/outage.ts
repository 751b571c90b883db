// The main database away for ten seconds under load, in the two ways in which a server can be: it refuses, or it accepts
// and never answers. One process may answer from memory for longer than that, another for two seconds only.
import { setTimeout as pause } from "node:timers/promises";
import { type FaultMode, type FaultProxy, keepOn, startFaultProxy, waitFor } from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks, revokeLinks, targetOf } from "./link-rows.ts";
import { type OwnServer, startOwnServer } from "./own-server.ts";
import { type RedirectProcess, startRedirect, type Visit } from "./redirect-process.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { lastOldMs, revokeWatched } from "./revocation-windows.ts";

const AWAY_MS = 10_000;
const POLL_MS = 100;
const QUERY_TIMEOUT_MS = 1000;
const LONG_TTL_MS = 60_000;
const SHORT_TTL_MS = 2000;
/** A deadline is met as soon as its process gets the processor; on a busy machine that may take as long again. */
const REFUSED_MS = 2 * QUERY_TIMEOUT_MS;
/** A read under way that fails at its deadline, the pause after it, and the read that brings the change. */
const RECONNECTED_MS = 2 * QUERY_TIMEOUT_MS + POLL_MS;
const WARM = 20;
const COLD = 8;
const VISITORS = 6;
/** Of one process: two for links, one for the log, one that listens. */
const CONNECTIONS = 4;

const SETTINGS = { POLL_INTERVAL_MS: String(POLL_MS), QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS) };

/** A way to be away, and what the path to such a server looks like from outside. */
type Absence = { leave(server: OwnServer): Promise<void>; comeBack(server: OwnServer): Promise<void>; path: FaultMode };

const STOPPED: Absence = { leave: (server) => server.stop(), comeBack: (server) => server.start(), path: "refuse" };
const FROZEN: Absence = { leave: (server) => server.freeze(), comeBack: async (server) => server.thaw(), path: "hang" };

export const d1: EvidenceCase = {
  id: "D1",
  shows:
    "with the main database stopped, links in memory lead on, others are 503 within the deadline, none is called unknown or is answered for longer than a TTL, and all recovers by itself",
  run: (report) => goWithout(report, STOPPED),
};

export const d2: EvidenceCase = {
  id: "D2",
  shows: "a main database that accepts and never answers changes nothing of that, and its connections are replaced",
  run: (report) => goWithout(report, FROZEN),
};

type World = { report: Report; server: OwnServer; path: FaultProxy; lasting: RedirectProcess; brief: RedirectProcess };

async function goWithout(report: Report, absence: Absence): Promise<void> {
  await closingAfterwards(async (later) => {
    const server = await startOwnServer();
    later(server.close);
    const path = await startFaultProxy(server.port);
    later(path.close);
    const start = async (url: string, ttlMs: number) => {
      const redirect = await startRedirect(url, { ...SETTINGS, CACHE_TTL_MS: String(ttlMs) });
      later(redirect.stop);
      await waitFor("notifications", redirect.listening);
      return redirect;
    };
    const lasting = await start(server.url, LONG_TTL_MS);
    const own = await backendsOf(server);
    const brief = await start(path.through(server.url), SHORT_TTL_MS);
    const world = { report, server, path, lasting, brief };
    const warm = await insertLinks(server.sql, "warm", WARM);
    const cold = await insertLinks(server.sql, "cold", COLD);
    for (const redirect of [lasting, brief]) await expectStatuses(report, "before", redirect, warm, 302);
    const before = await backendsOf(server);

    await endure(world, absence, { warm, cold });
    await recoverLasting(world, { warm, cold });
    await recoverBrief(world, warm);
    for (const redirect of [lasting, brief]) {
      await waitFor("notifications to come back", redirect.listening);
      report.check("flushes", await redirect.flushes(), { started: 1 });
      report.check("the process runs and found nothing wrong with itself", redirect.isUnhurt(), true);
    }
    // Behind the broken path the server is never told that those of the other process have ended.
    const left = async () => (await backendsOf(server)).filter((pid) => own.includes(pid)).length;
    await waitFor("the connections of before to end", async () => (await left()) === 0);
    const fresh = (await backendsOf(server)).filter((pid) => !before.includes(pid)).length;
    report.check("connections after, all of them new, are no more than ever", fresh <= 2 * CONNECTIONS, true);
  });
}

type Links = { warm: readonly string[]; cold: readonly string[] };

/** Load on both processes, before the server leaves and until it is back; what has to be read is asked for meanwhile. */
async function endure(world: World, absence: Absence, { warm, cold }: Links): Promise<void> {
  const { server, path, lasting, brief } = world;
  const load = [startLoad(lasting, warm), startLoad(brief, warm)];
  await absence.leave(server);
  path.set(absence.path);
  const awayFrom = performance.now();
  const misses = startLoad(lasting, [...cold, `${cold[0]}+`, "no-such-code"]);
  await pause(AWAY_MS);
  const missed = await misses.end();
  await judgeOps(world);
  await absence.comeBack(server);
  const [kept = [], fenced = []] = await Promise.all(load.map(({ end }) => end()));
  judgeMissed(world.report, missed);
  judgeKept(world.report, kept, warm);
  judgeFenced(world.report, fenced, awayFrom);
}

/** Several visitors at once, each of whom asks for one link after the other. */
function startLoad(redirect: RedirectProcess, paths: readonly string[]) {
  const over = new AbortController();
  const visits: (Visit & { path: string })[] = [];
  let next = 0;
  const visitors = Array.from({ length: VISITORS }, () =>
    keepOn(over.signal, async () => {
      const path = paths[next++ % paths.length] ?? "";
      visits.push({ ...(await redirect.visit(path)), path });
    }),
  );
  const done = Promise.all(visitors);
  done.catch(() => {}); // told by `end`
  return {
    async end() {
      over.abort();
      await done;
      return visits;
    },
  };
}

function judgeKept(report: Report, kept: readonly (Visit & { path: string })[], warm: readonly string[]): void {
  const wrong = kept.filter(({ status, headers, path }) => status !== 302 || headers.location !== targetOf(path));
  report.check("warm: answers that did not lead to the target, before, throughout and after", wrong.length, 0);
  report.check("warm: links asked for", new Set(kept.map(({ path }) => path)).size, warm.length);
  report.figure(`${kept.length} answers from memory, slowest ${slowest(kept)} ms`);
}

function judgeMissed(report: Report, missed: readonly Visit[]): void {
  report.check("cold or unknown: statuses", statusesOf(missed), [503]);
  const told = missed.map(({ headers }) => `${headers["retry-after"]}, ${headers["cache-control"]}`);
  report.check("cold: when to come back, and that nobody keeps it", [...new Set(told)], ["2, no-store"]);
  report.check(`cold: answered within ${REFUSED_MS} ms`, missed.filter(({ ms }) => ms > REFUSED_MS).length, 0);
  report.figure(`${missed.length} refusals, slowest ${slowest(missed)} ms (query deadline ${QUERY_TIMEOUT_MS} ms)`);
}

function judgeFenced(report: Report, fenced: readonly Visit[], awayFrom: number): void {
  const old = fenced.filter(({ status }) => status === 302).map(({ sentAt }) => sentAt - awayFrom);
  report.check(
    `short TTL: answers for requests sent ${SHORT_TTL_MS} ms after`,
    old.filter((ms) => ms > SHORT_TTL_MS).length,
    0,
  );
  report.check("short TTL: statuses", statusesOf(fenced), [302, 503]);
  report.figure(
    `TTL ${SHORT_TTL_MS} ms: last answer from memory for a request sent ${Math.max(...old).toFixed(0)} ms after`,
  );
}

/** Nobody restarts a process for this, and nobody sends visitors to one that cannot serve them. */
async function judgeOps({ report, lasting, brief }: World): Promise<void> {
  const ask = async ({ service }: RedirectProcess, path: string) => (await fetch(`${service.opsUrl}${path}`)).status;
  report.check("alive while it is away", [await ask(lasting, "/livez"), await ask(brief, "/livez")], [200, 200]);
  report.check("ready while it is away", [await ask(lasting, "/readyz"), await ask(brief, "/readyz")], [200, 503]);
}

/** What had to be refused is answered again, and the log is read on from where it was. */
async function recoverLasting({ report, server, lasting }: World, { warm, cold }: Links): Promise<void> {
  for (const code of cold) report.check(`${code}: answers until 302`, await until(lasting, code, 302), [503]);
  report.check("unknown: answers until 404", await until(lasting, "no-such-code", 404), [503]);
  const [revoked = "", ...kept] = warm;
  const windows = await revokeWatched([lasting], revoked, () => revokeLinks(server.sql, revoked));
  report.check(`a revocation takes ${RECONNECTED_MS} ms at the most`, lastOldMs(windows) <= RECONNECTED_MS, true);
  await expectStatuses(report, "after", lasting, kept, 302);
}

/** The server is back, but not for this process when a link is revoked: it never leads there again. */
async function recoverBrief({ report, server, path, brief }: World, warm: readonly string[]): Promise<void> {
  const [, revoked = "", kept = ""] = warm;
  await revokeLinks(server.sql, revoked);
  await expectStatuses(report, "server back, path still broken", brief, [revoked, kept], 503);
  path.set("pass");
  report.check("revoked meanwhile: answers until 410", await until(brief, revoked, 410), [503]);
  report.check("another link: answers until 302", await until(brief, kept, 302), [503]);
  await waitFor("readiness", async () => (await fetch(`${brief.service.opsUrl}/readyz`)).status === 200);
}

/** Asks until `status` comes. Returns the different other ones, or 503 alone where it came at once. */
async function until(redirect: RedirectProcess, path: string, status: number): Promise<number[]> {
  const others = new Set([503]);
  await waitFor(`${status} for ${path}`, async () => {
    const answered = await redirect.status(path);
    if (answered !== status) others.add(answered);
    return answered === status;
  });
  return [...others];
}

async function expectStatuses(
  report: Report,
  when: string,
  redirect: RedirectProcess,
  codes: readonly string[],
  status: number,
): Promise<void> {
  const visits = await Promise.all(codes.map(redirect.visit));
  report.check(`${when}: statuses`, statusesOf(visits), [status]);
}

async function backendsOf(server: OwnServer): Promise<number[]> {
  const rows = await server.sql<{ pid: number }[]>`SELECT pid FROM pg_stat_activity
    WHERE application_name LIKE 'linkfence-redirect%' OR application_name = 'linkfence-listen'`;
  return rows.map(({ pid }) => pid);
}

const statusesOf = (visits: readonly Visit[]) => [...new Set(visits.map(({ status }) => status))].sort();
const slowest = (visits: readonly Visit[]) => Math.max(...visits.map(({ ms }) => ms)).toFixed(0);
