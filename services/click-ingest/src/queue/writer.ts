// Takes clicks from the intake and stores them, one transaction at a time; requests that wait together share one. An
// outcome is recorded only after the commit. A transient failure keeps the clicks and tries again until the requests'
// deadlines take them back. Of a poisoned batch each sender's part is tried alone, so that one sender's bad clicks keep no
// other's back; in what is poisoned then, the bad ones are looked for step by step (see `suspects.ts`), and whatever has
// come meanwhile is stored before each step. Storing twice is harmless (the id decides), so an attempt whose answer was lost
// is simply repeated: what it had stored counts as duplicate.
import { setTimeout as delay } from "node:timers/promises";
import type { Click } from "@linkfence/contracts";
import { errorCode } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import { backoffMs } from "../domain/backoff.ts";
import { judgeFailure } from "../domain/failure.ts";
import { createFailureCounts } from "./failure-counts.ts";
import type { Intake } from "./intake.ts";
import type { Part } from "./submission.ts";
import { createSuspects, type SuspectsOptions } from "./suspects.ts";

/** Ids that were new, and ids of days that are no longer; the others had been stored before. */
export type Stored = { fresh: Set<string>; late: Set<string> };

export type WriterOptions = {
  intake: Intake;
  /** Stores clicks in one transaction. */
  insert: (clicks: readonly Click[]) => Promise<Stored>;
  /** Settles some clicks of a sender of which the database refuses one or more. */
  isolate: SuspectsOptions["isolate"];
  /** Clicks in one transaction at the most. */
  batchMax: number;
  logger: Logger;
  judge?: typeof judgeFailure;
  wait?: (ms: number) => Promise<unknown>;
  random?: () => number;
};

/** Clicks of one step at the most: where all are refused, about what can be looked through in the time that it may take. */
const STEP_MAX = 250;

export type Writer = ReturnType<typeof createWriter>;

/** Creates the writer; it works from `start` on. */
export function createWriter(options: WriterOptions) {
  const {
    intake,
    insert,
    isolate,
    batchMax,
    logger,
    judge = judgeFailure,
    wait = delay,
    random = Math.random,
  } = options;
  const counts = { batches: 0, rows: 0, retries: 0, isolations: 0 };
  const suspects = createSuspects({ isolate, stepMax: STEP_MAX });
  const failed = createFailureCounts();
  /** Failed attempts in a row. It outlives a batch, so that a long outage is not asked anew with each one. */
  let failures = 0;
  let lastCode = "";
  let loop: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!suspects.isEmpty() || (await intake.arrival())) {
      try {
        await store(intake.take(batchMax));
        if (!suspects.isEmpty()) await isolateSome();
      } catch (error) {
        logger.error("a batch was left to its deadline", { error });
      }
    }
  }

  /** Ends when every click of the parts is accounted for or suspect, or nobody waits for them any more. */
  async function store(parts: readonly Part[]): Promise<void> {
    for (;;) {
      const open = parts.filter(({ submission }) => submission.isOpen());
      if (open.length === 0) return;
      try {
        record(open, await insert(open.flatMap(({ clicks }) => clicks)));
        return noteSuccess();
      } catch (error) {
        failed.add(errorCode(error));
        if (judge(errorCode(error)) === "poison") return part(open);
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
      const late = lateIds.size === 0 ? [] : clicks.filter(({ id }) => lateIds.has(id));
      submission.record({ inserted, duplicate: clicks.length - inserted - late.length, late });
    }
  }

  /** Stores each sender's clicks by themselves; those of one sender alone are suspect. */
  async function part(parts: readonly Part[]): Promise<void> {
    const bySender = new Map<string, Part[]>();
    for (const each of parts) {
      const { sender } = each.submission.origin;
      bySender.set(sender, [...(bySender.get(sender) ?? []), each]);
    }
    const [first, ...others] = bySender;
    if (first && others.length === 0) return suspects.add(...first);
    for (const own of bySender.values()) await store(own);
  }

  async function isolateSome(): Promise<void> {
    try {
      const { inserted, refused } = await suspects.step();
      counts.isolations += 1;
      counts.rows += inserted;
      noteSuccess();
      // One line for all of them: the rest is in their dead letters.
      const [first] = refused;
      if (first === undefined) return;
      const { click, sqlstate } = first;
      logger.warn("the database refused clicks", {
        refused: refused.length,
        clickId: click.id,
        code: click.code,
        sqlstate,
      });
    } catch (error) {
      failed.add(errorCode(error));
      noteFailure(error);
      await wait(backoffMs(failures, random()));
      counts.retries += 1;
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
    stats: () => ({ ...counts, suspects: suspects.clicks(), failed: failed.read() }),
  };
}
