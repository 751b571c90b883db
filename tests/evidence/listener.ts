// The connection for LISTEN broken in every way, under a real process that polls: revocations do not depend on it.
import { setTimeout as pause } from "node:timers/promises";
import {
  createTestDatabase,
  meanwhile,
  startFaultProxy,
  type TestDatabase,
  testServerUrl,
  waitFor,
} from "@linkfence/testkit";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type RedirectProcess, startRedirect } from "./redirect-process.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { revokeWatched, spread, type Window } from "./revocation-windows.ts";

/** So slow that what a notification does cannot be taken for what a poll does. */
const POLL_MS = 1000;
const QUERY_TIMEOUT_MS = 1000;
const BOUND_MS = POLL_MS + QUERY_TIMEOUT_MS;
/** The listening library, left to itself, gives up after three seconds of refused connections. */
const LIBRARY_GIVES_UP_MS = 3000;
const KILLS = 50;
/** Longer than a new connection takes to be made and proven, so that some are ended before that and some after. */
const KILL_PAUSE_MS = 400;
const FOREIGN_PAYLOADS = ["not json {", "", "null", "\u0001\u2028", "-1", "x".repeat(7999)];
const FLOOD = { transactions: 20, notifications: 10_000, payloadBytes: 1000 };
/** Revocations by which it is told whether notifications arrive: polls alone let half a poll pass in most of them. */
const PROOFS = 9;

const SETTINGS = { POLL_INTERVAL_MS: String(POLL_MS), QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS) };

export const r8: EvidenceCase = {
  id: "R8",
  shows:
    "a listener that is cut off, refused, killed fifty times, spoken to by strangers or flooded costs a revocation one poll at the most",
  async run(report) {
    await Promise.all([cutOff(report), killed(report)]);
    await spokenTo(report);
  },
};

/** A process with links to revoke, and the windows in which they were. */
type Trial = { redirect: RedirectProcess; database: TestDatabase; revokeNext(): Promise<void>; windows: Window[] };

/** Runs `use` with a process that listens through `through`, and ends it. */
async function withListener(
  report: Report,
  { what, through = (url) => url }: { what: string; through?: (url: string) => string },
  use: (trial: Trial) => Promise<void>,
): Promise<void> {
  const database = await createTestDatabase("main");
  const redirect = await startRedirect(database.url, { ...SETTINGS, LISTEN_DATABASE_URL: through(database.url) });
  const windows: Window[] = [];
  let revoked = 0;
  async function revokeNext(): Promise<void> {
    const [code = ""] = await insertLinks(database.sql, `link${++revoked}-`, 1);
    windows.push(...(await revokeWatched([redirect], code, () => revokeLinks(database.sql, code))));
  }
  try {
    await waitFor("notifications", redirect.listening);
    await use({ redirect, database, revokeNext, windows });
    judgeWindows(report, what, windows);
    report.check(`${what}: the process runs and found nothing wrong with itself`, redirect.isUnhurt(), true);
  } finally {
    await redirect.stop();
    await database.drop();
  }
}

function judgeWindows(report: Report, what: string, windows: readonly Window[]): void {
  const late = windows.filter(({ lastOldMs }) => lastOldMs > BOUND_MS);
  report.check(`${what}: revocations that took longer than poll + query deadline (${BOUND_MS} ms)`, late.length, 0);
  report.check(
    `${what}: answers that were neither 302 nor 410`,
    windows.flatMap(({ others }) => others),
    [],
  );
  report.figure(
    `${what}: ${spread(windows.map(({ goneMs }) => goneMs))} (bound ${BOUND_MS.toLocaleString("en-US")} ms, ${windows.length} revocations)`,
  );
}

/** Waits until the process says that it hears, and sees by revocations that it does. */
async function expectNotifications(report: Report, what: string, trial: Trial): Promise<void> {
  await waitFor("notifications to come back", trial.redirect.listening);
  const before = trial.windows.length;
  for (let proof = 0; proof < PROOFS; proof += 1) await trial.revokeNext();
  const times = trial.windows.slice(before).map(({ goneMs }) => goneMs);
  const quick = times.filter((ms) => ms < POLL_MS / 4).length;
  report.check(
    `${what}: notifications arrive again: most windows are below a quarter of a poll`,
    quick > PROOFS / 2,
    true,
  );
  report.note(`${what}: ${spread(times)}`);
}

/** A connection that is open and carries nothing, and then a server that refuses every new one. */
async function cutOff(report: Report): Promise<void> {
  const proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
  try {
    await withListener(report, { what: "cut off", through: proxy.through }, async (trial) => {
      const { redirect, revokeNext } = trial;
      const cutAt = performance.now();
      proxy.set("hang");
      await meanwhile(revokeNext, () =>
        waitFor("the silence to be noticed", async () => !(await redirect.listening())),
      );
      report.note(`silence noticed after ${(performance.now() - cutAt).toFixed(0)} ms`);
      proxy.set("pass");
      await expectNotifications(report, "after a black hole", trial);

      proxy.set("refuse");
      const refusedAt = performance.now();
      while (performance.now() - refusedAt < 2 * LIBRARY_GIVES_UP_MS) await revokeNext();
      proxy.set("pass");
      await expectNotifications(report, "after refusals", trial);
      report.check("connections left behind", proxy.connections(), 1);
    });
  } finally {
    await proxy.close();
  }
}

/** The backend that serves the listener ended again and again, at random moments, while revocations go on. */
async function killed(report: Report): Promise<void> {
  await withListener(report, { what: `killed ${KILLS} times` }, async (trial) => {
    const { database, redirect, revokeNext } = trial;
    const ended = new Set<number>();
    await meanwhile(revokeNext, () =>
      waitFor("fifty connections to end", async () => {
        const rows = await database.sql<{ pid: number }[]>`SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'linkfence-listen'`;
        for (const { pid } of rows) ended.add(pid);
        await pause(Math.random() * KILL_PAUSE_MS);
        return ended.size >= KILLS;
      }),
    );
    const reconnects = await redirect.metric("linkfence_listen_reconnects_total");
    report.check("each loss was noticed", reconnects >= KILLS - 1, true);
    await expectNotifications(report, "after the kills", trial);
  });
}

/** Notifications that are not ours, and then more of them than anybody sends, all on our channel. */
async function spokenTo(report: Report): Promise<void> {
  await withListener(report, { what: "foreign notifications and a flood" }, async (trial) => {
    const { database, redirect, revokeNext } = trial;
    for (const payload of FOREIGN_PAYLOADS) await database.sql`SELECT pg_notify('link_change', ${payload})`;
    await expectNotifications(report, "after foreign payloads", trial);
    report.check("connections given up", await redirect.metric("linkfence_listen_reconnects_total"), 0);

    const startedAt = performance.now();
    const memory = await startMemoryWatch(redirect);
    const revokeAndWatch = () => Promise.all([revokeNext(), memory.look()]);
    await meanwhile(revokeAndWatch, async () => {
      await flood(database);
      // The server keeps each of them until the listener has taken it.
      await waitFor("the flood to be over", async () => (await queueUsage(database)) === 0);
    });
    const growth = memory.growth();
    const sent = FLOOD.transactions * FLOOD.notifications;
    const sentBytes = sent * FLOOD.payloadBytes;
    report.note(
      `${sent} notifications of ${FLOOD.payloadBytes} bytes in ${(performance.now() - startedAt).toFixed(0)} ms`,
    );
    // Whoever kept what it was sent would grow by more than all of it.
    report.check("memory grew by less than half of what was sent", growth < sentBytes / 2, true);
    report.figure(`${sent} notifications, ${mebibytes(sentBytes)} MiB: memory grew by ${mebibytes(growth)} MiB`);
    await expectNotifications(report, "after the flood", trial);
  });
}

/** One payload is unlike any other, so that the server folds none of them into one. */
async function flood(database: TestDatabase): Promise<void> {
  const { transactions, notifications, payloadBytes } = FLOOD;
  for (let first = 0; first < transactions * notifications; first += notifications) {
    await database.sql`SELECT count(pg_notify('link_change', rpad(n::text || ' ', ${payloadBytes}, 'x')))
      FROM generate_series(${first}::int, ${first + notifications - 1}::int) n`;
  }
}

const queueUsage = async (database: TestDatabase) => {
  const [row] = await database.sql`SELECT pg_notification_queue_usage() AS usage`;
  return Number(row?.usage);
};

/** Bytes by which the process's memory exceeded, whenever it was looked at, what it was at first. */
async function startMemoryWatch({ metric }: RedirectProcess) {
  const resident = () => metric("linkfence_process_resident_memory_bytes");
  const before = await resident();
  let highest = before;
  return {
    async look(): Promise<void> {
      highest = Math.max(highest, await resident());
    },
    growth: () => highest - before,
  };
}

const mebibytes = (bytes: number) => (bytes / 1_048_576).toFixed(0);
