// A redirect process that is stopped in the middle of a turn, with requests in its sockets, and goes on when what it
// knows is too old. It was given the events of many connections at once and works through them before it looks at its
// timers: a timer comes too late, and only a clock that is read for each answer tells the truth.
import { setTimeout as passed } from "node:timers/promises";
import {
  createTestDatabase,
  spawnProcess,
  startService,
  type TestDatabase,
  WITHOUT_STATISTICS,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { openPipelines, type PipelinedAnswer, type RequestPipelines } from "./request-pipelines.ts";

const CLIENTS = 60;
/** Sixty times as many keep a process busy for some hundred milliseconds. */
const BURST = 100;
/** Connections that have been served when the process is stopped; the others wait in the turn that it is in. */
const SERVED = 20;
/** Rounds in which the stop has to meet the middle of a turn, and how many may be needed for that. */
const ROUNDS = { wanted: 3, most: 6 };

type Subject = { port: number; kill(signal: NodeJS.Signals): void; stop(): Promise<unknown> };
type Start = (databaseUrl: string, ttlMs: number) => Promise<Subject>;
type Scene = { subject: Subject; sql: TestDatabase["sql"]; pipelines: RequestPipelines; code: string; ttlMs: number };
/** Stops the process, revokes the link, sends one late request on each connection, and has the process go on. */
type Suspension = { ttlMs: number; run(scene: Scene): Promise<Suspended> };
/** `unserved`: connections that waited in the turn in which the process was stopped. */
type Suspended = { unserved: number; late: PipelinedAnswer[] };

const startProduct: Start = async (databaseUrl, ttlMs) => {
  const env = { DATABASE_URL: databaseUrl, CACHE_TTL_MS: String(ttlMs), ...WITHOUT_STATISTICS };
  const service = await startService("redirect", env);
  await waitUntilReady(service);
  return { ...service, port: Number(new URL(service.url).port) };
};

/** The same parts, put together here, with the fence of that name. */
function startParts(fence: "clock" | "timed-memory" | "timed-log"): Start {
  return async (databaseUrl, ttlMs) => {
    const env = { DATABASE_URL: databaseUrl, CACHE_TTL_MS: String(ttlMs), FENCE: fence };
    const child = spawnProcess("tests/dist/redirect.fixture.js", env);
    const { port } = await child.logged(({ message }) => message === "listening");
    return { ...child, port: Number(port) };
  };
}

async function stopInMidTurn({ subject, pipelines, code }: Scene): Promise<void> {
  pipelines.send(code, BURST);
  await waitFor("the first answers", () => pipelines.answered() >= SERVED);
  subject.kill("SIGSTOP");
}

/** For twice the TTL: what it had read before is too old by any measure. */
const forTwiceTheTtl: Suspension = {
  ttlMs: 500,
  async run(scene) {
    const { subject, sql, pipelines, code, ttlMs } = scene;
    pipelines.send(code, 1);
    await pipelines.settled();
    await stopInMidTurn(scene);
    await revokeLinks(sql, code);
    await passed(ttlMs);
    const unserved = pipelines.unserved();
    pipelines.send(code, 1);
    await passed(ttlMs);
    subject.kill("SIGCONT");
    await pipelines.settled();
    return { unserved, late: pipelines.last() };
  },
};

/**
 * The link was read late, so it is young; but the log was not read for a TTL. The process has lost its place in the
 * registry, nobody waits for it, and the revocation is in force at its commit.
 */
const withoutTheLog: Suspension = {
  ttlMs: 1500,
  async run(scene) {
    const { subject, sql, pipelines, code, ttlMs } = scene;
    const registry = await sql.reserve();
    await registry`BEGIN`;
    await registry`LOCK TABLE redirect_instance IN ACCESS EXCLUSIVE MODE`;
    const lockedAt = performance.now();
    await passed(ttlMs / 2);
    pipelines.send(code, 1);
    await pipelines.settled();
    await stopInMidTurn(scene);
    await passed(lockedAt + ttlMs - performance.now());
    const unserved = pipelines.unserved();
    await registry`DELETE FROM redirect_instance`;
    await registry`COMMIT`;
    registry.release();
    await revokeLinks(sql, code);
    pipelines.send(code, 1);
    subject.kill("SIGCONT");
    await pipelines.settled();
    return { unserved, late: pipelines.last() };
  },
};

/** Repeats it until the stop has met the middle of a turn often enough, or `enough` of what was seen. */
function suspend(start: Start, { ttlMs, run }: Suspension, enough = (_stale: number) => false) {
  return closingAfterwards(async (later) => {
    const database = await createTestDatabase("main");
    later(database.drop);
    const subject = await start(database.url, ttlMs);
    later(subject.stop);
    later(() => subject.kill("SIGCONT"));
    const seen = { rounds: 0, late: 0, stale: 0 };
    for (const code of await insertLinks(database.sql, "link", ROUNDS.most)) {
      await waitFor("a process that follows the log", () => isFollowing(database.sql));
      const pipelines = await openPipelines(subject.port, CLIENTS);
      later(pipelines.close);
      const { unserved, late } = await run({ subject, sql: database.sql, pipelines, code, ttlMs });
      pipelines.close();
      if (unserved > 0) seen.rounds += 1;
      seen.late += late.length;
      seen.stale += late.filter(({ status }) => status !== 410 && status !== 503).length;
      if (seen.rounds === ROUNDS.wanted || enough(seen.stale)) break;
    }
    return seen;
  });
}

/** A process renews its row only after it has read the log once. */
async function isFollowing(sql: TestDatabase["sql"]): Promise<boolean> {
  const rows = await sql`SELECT FROM redirect_instance WHERE renewals > 0`;
  return rows.length === 1;
}

async function showFenced(report: Report, suspension: Suspension): Promise<void> {
  const subjects = [
    ["the service", startProduct],
    ["its parts put together here", startParts("clock")],
  ] as const;
  for (const [what, start] of subjects) {
    const { rounds, late, stale } = await suspend(start, suspension);
    report.check(`${what}: the stop met the middle of a turn`, rounds > 0, true);
    report.check(`${what}: late requests that got the old target`, stale, 0);
    report.note(`${what}: ${late} late requests, ${rounds} stops in the middle of a turn`);
  }
}

async function showDamage(report: Report, suspension: Suspension, fence: "timed-memory" | "timed-log"): Promise<void> {
  const { late, stale } = await suspend(startParts(fence), suspension, (count) => count > 0);
  report.check("late requests got the old target", stale > 0, true);
  report.figure(`${stale} of ${late} late requests got the old target`);
}

export const r7: EvidenceCase = {
  id: "R7",
  shows: "a process stopped for twice the TTL gives nobody the old target who asked a TTL after the revocation",
  run: (report) => showFenced(report, forTwiceTheTtl),
};

export const r7c: EvidenceCase = {
  id: "R7c",
  shows: "when a timer says what is too old, requests that lie in its sockets get the old target",
  control: true,
  run: (report) => showDamage(report, forTwiceTheTtl, "timed-memory"),
};

export const r7s: EvidenceCase = {
  id: "R7s",
  shows:
    "a process that has not read the log for a TTL, and that nobody waits for, answers nothing from memory, however young",
  run: (report) => showFenced(report, withoutTheLog),
};

export const r7sc: EvidenceCase = {
  id: "R7sc",
  shows: "when a timer says whether the log was read, requests after the revocation get the old target",
  control: true,
  run: (report) => showDamage(report, withoutTheLog, "timed-log"),
};
