// Takes clicks from the intake and stores them, one transaction at a time; requests that wait together share one. An
// outcome is recorded only after the commit. A transient failure keeps the clicks and tries again until the requests'
// deadlines take them back; a poisoned batch is halved until the bad click stands alone. Storing twice is harmless
// (the id decides), so an attempt whose answer was lost is simply repeated: what it had stored counts as duplicate.
import { setTimeout as delay } from "node:timers/promises";
import type { Click } from "@linkfence/contracts";
import { errorCode } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import { backoffMs } from "../domain/backoff.ts";
import { judgeFailure } from "../domain/failure.ts";
import { createFailureCounts } from "./failure-counts.ts";
import type { Intake } from "./intake.ts";
import type { Part } from "./submission.ts";

/** Ids that were new, and ids of days that are no longer; the others had been stored before. */
export type Stored = { fresh: Set<string>; late: Set<string> };

export type WriterOptions = {
  intake: Intake;
  /** Stores clicks in one transaction. */
  insert: (clicks: readonly Click[]) => Promise<Stored>;
  /** Clicks in one transaction at the most. */
  batchMax: number;
  logger: Logger;
  judge?: typeof judgeFailure;
  wait?: (ms: number) => Promise<unknown>;
  random?: () => number;
};
export type Writer = ReturnType<typeof createWriter>;

/** Creates the writer; it works from `start` on. */
export function createWriter(options: WriterOptions) {
  const { intake, insert, batchMax, logger, judge = judgeFailure, wait = delay, random = Math.random } = options;
  const counts = { batches: 0, rows: 0, retries: 0 };
  const failed = createFailureCounts();
  /** Failed attempts in a row. It outlives a batch, so that a long outage is not asked anew with each one. */
  let failures = 0;
  let lastCode = "";
  let loop: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (await intake.arrival()) {
      try {
        await store(intake.take(batchMax));
      } catch (error) {
        logger.error("a batch was left to its deadline", { error });
      }
    }
  }

  /** Ends when every click of the parts is accounted for, or nobody waits for them any more. */
  async function store(parts: readonly Part[]): Promise<void> {
    for (;;) {
      const open = parts.filter(({ submission }) => submission.isOpen());
      if (open.length === 0) return;
      try {
        record(open, await insert(open.flatMap(({ clicks }) => clicks)));
        return noteSuccess();
      } catch (error) {
        failed.add(errorCode(error));
        if (judge(errorCode(error)) === "poison") return isolate(open, error);
        noteFailure(error);
      }
      await wait(backoffMs(failures, random()));
      counts.retries += 1;
    }
  }

  function record(parts: readonly Part[], { fresh, late: lateIds }: Stored): void {
    counts.batches += 1;
    counts.rows += fresh.size;
    for (const { submission, clicks } of parts) {
      // An id leaves the set when it is counted: the second click with that id is the duplicate.
      const inserted = clicks.filter(({ id }) => fresh.delete(id)).length;
      const late = lateIds.size === 0 ? 0 : clicks.filter(({ id }) => lateIds.has(id)).length;
      submission.record({ inserted, duplicate: clicks.length - inserted - late, late });
    }
  }

  /** Halves the batch until the bad click stands alone. For n clicks that takes at most 2n - 1 attempts. */
  async function isolate(parts: readonly Part[], error: unknown): Promise<void> {
    const [first] = parts;
    if (first && parts.length === 1 && first.clicks.length === 1) return setAside(first, error);
    const [left, right] = halve(parts);
    await store(left);
    await store(right);
  }

  function setAside({ submission, clicks }: Part, error: unknown): void {
    const sqlstate = errorCode(error);
    const detail = error instanceof Error ? error.message : "";
    submission.record({ unstorable: clicks.map((click) => ({ click, sqlstate, detail })) });
    for (const { id, code } of clicks) {
      logger.warn("the database refused a click", { clickId: id, code, sqlstate, error });
    }
  }

  function noteFailure(error: unknown): void {
    failures += 1;
    const sqlstate = errorCode(error);
    // A long outage fails once a second: it is told once, and again when it turns into another.
    if (failures === 1 || sqlstate !== lastCode)
      logger.warn("clicks cannot be stored, trying again", { sqlstate, error });
    lastCode = sqlstate;
  }

  function noteSuccess(): void {
    if (failures > 0) logger.info("clicks are stored again", { failures });
    failures = 0;
  }

  return {
    start(): void {
      loop ??= run();
    },
    /** Closes the intake, and resolves when everything in it is stored or given back. */
    async stop(): Promise<void> {
      intake.close();
      await loop;
    },
    stats: () => ({ ...counts, failed: failed.read() }),
  };
}

/** Two halves with the same clicks in the same order; a part in the middle is cut in two. */
function halve(parts: readonly Part[]): [Part[], Part[]] {
  const total = parts.reduce((sum, { clicks }) => sum + clicks.length, 0);
  const left: Part[] = [];
  const right: Part[] = [];
  let room = Math.floor(total / 2);
  for (const { submission, clicks } of parts) {
    if (room > 0) left.push({ submission, clicks: clicks.slice(0, room) });
    if (clicks.length > room) right.push({ submission, clicks: clicks.slice(room) });
    room = Math.max(0, room - clicks.length);
  }
  return [left, right];
}
