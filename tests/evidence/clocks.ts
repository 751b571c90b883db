// Wall clocks that are wrong and that step, of the processes and of the database: an expiry goes by the database's clock
// as it is when the link is read, and nothing else goes by a wall clock.
import { setTimeout as pause } from "node:timers/promises";
import { createTestDatabase, type FaultProxy, meanwhile, startFaultProxy, waitFor } from "@linkfence/testkit";
import { type DatabaseClock, exchangeClock, HOUR_MS, setBack, wrongClock } from "./clock-steps.ts";
import { closingAfterwards } from "./closing.ts";
import { followExpiry, insertExpiring } from "./expiries.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { startRedirect, type Visit } from "./redirect-process.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { type Fleet, lastOldMs, revokeOneByOne, revokeWatched, warm } from "./revocation-windows.ts";

const POLL_MS = 100;
const QUERY_TIMEOUT_MS = 1000;
const TTL_MS = 3000;
const BOUND_MS = POLL_MS + QUERY_TIMEOUT_MS;
/** With half as much again, over before an entry nears its end and is read anew. */
const LIFE_MS = 800;
const REVOCATIONS = 3;
/** How far the clock of each process, and that of the database in turn, is ahead of the machine's. */
const AHEAD_MS = [0, HOUR_MS, -HOUR_MS];

const SETTINGS = {
  POLL_INTERVAL_MS: String(POLL_MS),
  QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS),
  CACHE_TTL_MS: String(TTL_MS),
  LISTEN_ENABLED: "false",
};

export const r12: EvidenceCase = {
  id: "R12",
  shows:
    "with wall clocks that are an hour off and that step, links end at the instant of the database's clock, and revocations keep their bound",
  run: (report) =>
    closingAfterwards(async (later) => {
      const database = await createTestDatabase("main");
      later(database.drop);
      const path = await startFaultProxy(Number(new URL(database.url).port));
      later(path.close);
      const start = async (aheadMs: number) => {
        const redirect = await startRedirect(path.through(database.url), { ...SETTINGS, ...wrongClock(aheadMs) });
        later(redirect.stop);
        return redirect;
      };
      const redirects = await Promise.all(AHEAD_MS.map(start));
      const { sql } = database;
      const clock = await exchangeClock(sql);
      report.check("the view that tells how long a link has left goes by the exchanged clock", clock.asked, true);
      const world = { report, path, redirects, sql, clock };
      const oldMs: number[] = [];
      for (const [index, aheadMs] of AHEAD_MS.entries()) {
        await clock.set(aheadMs);
        const exactness = await followExpiry(report, world, { code: `ending${index}`, lifeMs: LIFE_MS, aheadMs });
        report.note(`database ${aheadMs / HOUR_MS} h ahead: ${exactness}`);
        oldMs.push(await revokeSome(world, `revoked${index}-`));
      }
      report.figure(
        `last old target ${Math.max(...oldMs).toFixed(0)} ms after the commit of a revocation (bound ${BOUND_MS} ms)`,
      );
      await setBackBeforeTheEnd(world);
      await stepOverExpiry(world);
      await setBackWhileCutOff(world);
      report.check("processes in trouble with themselves", redirects.filter((one) => !one.isUnhurt()).length, 0);
    }),
};

type World = Fleet & { report: Report; path: FaultProxy; clock: DatabaseClock };

/** Beside processes whose own clocks are off, the database's is off, too: revocations ask no clock. */
async function revokeSome({ report, sql, redirects }: World, prefix: string): Promise<number> {
  const windows = await revokeOneByOne({ redirects, sql }, await insertLinks(sql, prefix, REVOCATIONS));
  const oldMs = lastOldMs(windows.flat());
  report.check(`revocations take ${BOUND_MS} ms at the most`, oldMs <= BOUND_MS, true);
  return oldMs;
}

/** Set back while it has a link in memory: the link ends when it was to end, and not when that clock says so again. */
async function setBackBeforeTheEnd(world: World): Promise<void> {
  const { report, redirects, clock } = world;
  await clock.set(0);
  const meanwhile = () => Promise.all(redirects.map(setBack));
  const exactness = await followExpiry(report, world, { code: "set-back", lifeMs: LIFE_MS, meanwhile });
  report.note(`clocks of the processes set back meanwhile: ${exactness}`);
}

/** The database's clock steps over the end of a link that is in memory: that memory lasts for a TTL at the most. */
async function stepOverExpiry({ report, sql, redirects, clock }: World): Promise<void> {
  await clock.set(0);
  const { code } = await insertExpiring(sql, { code: "stepped", lifeMs: HOUR_MS / 2 });
  const windows = await revokeWatched(redirects, code, () => clock.set(HOUR_MS));
  report.check(
    `an end that was stepped over takes a TTL (${TTL_MS} ms) at the most`,
    lastOldMs(windows) <= TTL_MS,
    true,
  );
  await clock.set(0);
}

/** Cut off from the database, and set back: a wall clock that repeats an hour makes nothing young again. */
async function setBackWhileCutOff({ report, sql, path, redirects }: World): Promise<void> {
  const [code = ""] = await insertLinks(sql, "cut-off", 1);
  await warm({ redirects, sql }, [code]);
  path.set("hang");
  await Promise.all(redirects.map(setBack));
  await revokeLinks(sql, code);
  const committedAt = performance.now();
  const visits: Visit[] = [];
  const visitAll = () => Promise.all(redirects.map(async ({ visit }) => void visits.push(await visit(code))));
  await meanwhile(visitAll, () => pause(1.5 * TTL_MS));
  const old = visits.filter(({ status, sentAt }) => status === 302 && sentAt - committedAt >= TTL_MS);
  report.check("clock set back: old targets for requests sent a TTL after the commit", old.length, 0);
  report.check("clock set back: statuses", [...new Set(visits.map(({ status }) => status))].sort(), [302, 503]);
  path.set("pass");
  for (const { status } of redirects) await waitFor("the end of the link", async () => (await status(code)) === 410);
}
