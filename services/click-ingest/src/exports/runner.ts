// Does the jobs, a few at a time. What it believes of a job is only ever a guess: whatever it writes about one names its
// token, and the database knows whether that still holds. So no clock and no timer here decides anything but when to try.
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ExportFault } from "@linkfence/contracts";
import type { Logger } from "@linkfence/service-shell";
import { afterFailure, CLOSED, waitMs, whileTrying } from "../domain/breaker.ts";
import { ExportFailure, isPassing, pauseMs } from "../domain/export-fault.ts";
import type { ExportWork, HeldJob, Progress } from "../store/export-work.ts";
import type { FileWriter } from "./write-file.ts";

export type RunnerOptions = {
  work: Pick<ExportWork, "claim" | "extend" | "finish" | "fail" | "release" | "leaseMs">;
  writer: FileWriter;
  /** Jobs at once. */
  workers: number;
  /** Names this process, for whoever looks at the jobs. */
  name: string;
  logger: Logger;
  /** Whether a job may begin at this moment; by default always. */
  mayBegin?: () => boolean;
  /** ms before the next attempt of a job that has failed so often. */
  pause?: (attempts: number) => number;
  /** Called when a file may be nobody's. */
  onLeftover?: () => void;
};
export type ExportRunner = ReturnType<typeof createExportRunner>;

/** Jobs that another process took, or gave back, are found this soon; those ordered here at once. */
const POLL_MS = 1000;
/** An owner who watches sees that something happens. */
const TELL_EVERY_MS = 1000;
/** Of a lease: two may be lost before the third is late. */
const LEASE_PART = 3;

/** Why an attempt is broken off. */
class Lost extends Error {}
class Stopping extends Error {}

/** Creates the runner. */
export function createExportRunner(options: RunnerOptions) {
  const { work, writer, workers, name, logger, mayBegin = () => true, onLeftover = () => {} } = options;
  const { pause = (attempts: number) => pauseMs(attempts, Math.random()) } = options;
  const stopping = new AbortController();
  const counts = { claimed: 0, succeeded: 0, lost: 0, released: 0, opened: 0 };
  const failed: Partial<Record<ExportFault, number>> = {};
  const running = new Set<HeldJob>();
  let breaker = CLOSED;
  let nudge = new AbortController();
  let loops: Promise<unknown> | undefined;

  function noteDatabase(answered: boolean): void {
    const before = breaker;
    breaker = answered ? CLOSED : afterFailure(breaker, performance.now());
    if (before.openUntil === 0 && breaker.openUntil > 0) {
      counts.opened += 1;
      logger.warn("no exports for a while: the database fails again and again");
    }
  }

  /**
   * Waits until somebody has ordered something, or this stops, or so many ms. For one signal that is aborted in either case:
   * in Node 20 one that lives long keeps something of each that `AbortSignal.any` ever made of it.
   */
  async function rest(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: nudge.signal, ref: false }).catch(() => {});
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      const open = waitMs(breaker, performance.now());
      if (open > 0) {
        await delay(open, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
        continue;
      }
      if (!mayBegin()) {
        await rest(POLL_MS);
        continue;
      }
      breaker = whileTrying(breaker, performance.now());
      const job = await claim();
      if (job) await attempt(job);
      else await rest(POLL_MS);
    }
  }

  async function claim(): Promise<HeldJob | undefined> {
    try {
      const job = await work.claim(name, randomBytes(16).toString("hex"));
      noteDatabase(true);
      if (job) counts.claimed += 1;
      return job;
    } catch (error) {
      noteDatabase(false);
      logger.warn("no export can be begun", { error });
      return undefined;
    }
  }

  /** Never rejects: what goes wrong is the job's, or told. */
  async function attempt(job: HeldJob): Promise<void> {
    const about = { export: job.id, attempt: job.attempts };
    const progress: Progress = { rows: 0, bytes: 0, estimated: null };
    const broken = new AbortController();
    const stop = () => broken.abort(new Stopping());
    stopping.signal.addEventListener("abort", stop);
    if (stopping.signal.aborted) stop();
    running.add(job);
    const over = new AbortController();
    const telling = tell(job, progress, { broken, over: over.signal });
    const startedAt = performance.now();
    try {
      const file = await writer.write(job, progress, broken.signal);
      over.abort();
      await telling;
      if (!(await finish(job, file))) throw new Lost("the job is no longer this worker's");
      counts.succeeded += 1;
      logger.info("export written", { ...about, ...file, ms: Math.round(performance.now() - startedAt) });
    } catch (error) {
      over.abort();
      await telling;
      await settle(job, error, about);
    } finally {
      stopping.signal.removeEventListener("abort", stop);
      running.delete(job);
    }
  }

  /** Says again and again that the job is worked on, and breaks the work off once nobody can be told or it was lost. */
  async function tell(
    job: HeldJob,
    progress: Progress,
    { broken, over }: { broken: AbortController; over: AbortSignal },
  ) {
    const every = Math.min(TELL_EVERY_MS, work.leaseMs / LEASE_PART);
    let heldUntil = performance.now() + work.leaseMs;
    while (!over.aborted && !broken.signal.aborted) {
      await delay(every, undefined, { signal: over, ref: false }).catch(() => {});
      if (over.aborted) return;
      const toldAt = performance.now();
      try {
        if (await work.extend(job, progress)) heldUntil = toldAt + work.leaseMs;
        else broken.abort(new Lost("the job is no longer this worker's"));
      } catch (error) {
        if (performance.now() > heldUntil) broken.abort(new Lost("nobody could be told of it", { cause: error }));
      }
    }
  }

  /**
   * The file is whole: that is worth a few tries. An answer that did not come may have been a yes, so that a later no
   * says nothing about the file: whoever tidies up looks whose it is.
   */
  async function finish(job: HeldJob, file: { rows: number; bytes: number }): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await work.finish(job, file);
      } catch (error) {
        if (tries === 3) throw new Lost("nobody could be told that it is written", { cause: error });
        await delay(pause(1) / 4, undefined, { ref: false });
      }
    }
  }

  async function settle(job: HeldJob, error: unknown, about: Record<string, unknown>): Promise<void> {
    if (error instanceof Stopping) {
      counts.released += 1;
      await work.release(job).catch(() => {}); // its lease ends by itself
      return;
    }
    if (error instanceof Lost) {
      counts.lost += 1;
      logger.warn("an export was left", { ...about, error });
      onLeftover();
      return;
    }
    const failure = error instanceof ExportFailure ? error : new ExportFailure("internal", "the export has a fault");
    const { fault } = failure;
    failed[fault] = (failed[fault] ?? 0) + 1;
    if (fault === "database") noteDatabase(false);
    logger.warn("an attempt to export failed", { ...about, fault, error: failure.cause ?? error });
    const again = isPassing(fault) ? pause(job.attempts) : null;
    await work.fail(job, fault, failure.message, again).catch((cause: unknown) => {
      logger.warn("nobody could be told of it", { ...about, error: cause });
    });
  }

  return {
    start(): void {
      loops ??= Promise.all(Array.from({ length: workers }, loop));
    },
    /** Something was ordered, or has changed: looks at once. */
    wake(): void {
      nudge.abort();
      nudge = new AbortController();
    },
    /** Breaks off what is under way and gives it back. Resolves when all of it has ended. */
    async stop(): Promise<void> {
      stopping.abort();
      nudge.abort();
      await loops;
    },
    stats: () => ({ ...counts, failed: { ...failed }, running: running.size, workers, open: breaker.openUntil > 0 }),
  };
}
