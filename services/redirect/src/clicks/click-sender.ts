// Carries batches of clicks to the ingest, one after the other. A batch is kept until the ingest says that it is stored;
// sending it again is safe, because the ingest tells clicks apart by their ids. Nothing here is awaited by a redirect.
import { CLICK_BATCH_LIMIT, type ClickBatchResult } from "@linkfence/contracts";
import { createPauses } from "@linkfence/link-feed";
import type { Batch, ClickBatches } from "./click-batches.ts";

/** How often an empty queue is looked at. */
const IDLE_MS = 100;
/** First and longest pause after a failure; each is shortened by up to half, at random. */
const BACKOFF_MS = { first: 100, longest: 5000 };

/**
 * What became of one attempt. `refused`: the ingest will never take this batch. `too-large`: it may take a smaller one.
 * `failed`: it may, later.
 */
export type SendResult =
  | { kind: "stored"; result: ClickBatchResult }
  | { kind: "refused" | "too-large" | "failed"; reason: string };

export type SenderOptions = {
  batches: ClickBatches;
  /** Clicks that wait. */
  waiting: () => number;
  send: (batch: Pick<Batch, "clicks" | "frames">, signal: AbortSignal) => Promise<SendResult>;
  /**
   * How long clicks wait for company, in ms: a batch goes when it is full, or so long after the one before it. The ingest
   * stores a thousand clicks in a transaction at little more than the price of one.
   */
  lingerMs: number;
  /** How long to wait after a batch that was so long under way, so that others have the time; in ms. */
  restMs: (tookMs: number) => number;
  /** Milliseconds of a clock that never steps. */
  now: () => number;
  random: () => number;
  /** Told once for each run of failures, and with null when it is over. */
  onTrouble: (reason: string | null) => void;
  /** Told each time that clicks have come to their end. */
  onSettled?: () => void;
};

/** Starts sending at once, in the background, until `stop`. */
export function createClickSender(options: SenderOptions) {
  const { batches, waiting, send, lingerMs, now, random, onTrouble, onSettled, restMs } = options;
  const counts = {
    inserted: 0,
    duplicate: 0,
    deadLettered: 0,
    refused: 0,
    batchRefused: 0,
    batches: 0,
    failures: 0,
    rests: 0,
  };
  const halt = new AbortController();
  let batch: Batch | null = null;
  let failuresInARow = 0;
  let sentAt = Number.NEGATIVE_INFINITY;
  let restUntil = Number.NEGATIVE_INFINITY;
  let draining = false;
  const { pause, rouse } = createPauses();
  const finished = run();

  async function run(): Promise<void> {
    while (!halt.signal.aborted) {
      const ms = pauseNow();
      if (ms > 0) await pause(ms);
      else if (waiting() === 0) return;
      else await sendNext();
    }
  }

  /** How long there is nothing to do, in ms. */
  function pauseNow(): number {
    if (batch !== null || draining) return 0;
    if (waiting() === 0) return IDLE_MS;
    const linger = waiting() >= CLICK_BATCH_LIMIT ? 0 : sentAt + lingerMs - now();
    return Math.max(linger, restUntil - now());
  }

  async function sendNext(): Promise<void> {
    try {
      batch ??= await batches.next();
    } catch (error) {
      await fail(`clicks cannot be read back: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (batch === null || halt.signal.aborted) return;
    sentAt = now();
    const outcome = await send(batch, halt.signal);
    if (outcome.kind === "too-large" && batches.divide(batch)) {
      onTrouble(`${outcome.reason} to ${batch.clicks} clicks at once: fewer are sent from now on`);
      batch = null;
    } else if (outcome.kind !== "failed") settle(batch, outcome);
    else if (!halt.signal.aborted) await fail(outcome.reason);
  }

  async function fail(reason: string): Promise<void> {
    counts.failures += 1;
    if (failuresInARow === 0) onTrouble(reason);
    const ms = Math.min(BACKOFF_MS.longest, BACKOFF_MS.first * 2 ** Math.min(failuresInARow, 10));
    failuresInARow += 1;
    await pause(ms * (1 - random() / 2));
  }

  function settle(sent: Batch, outcome: Exclude<SendResult, { kind: "failed" }>): void {
    if (failuresInARow > 0) onTrouble(null);
    failuresInARow = 0;
    if (outcome.kind === "stored") {
      counts.batches += 1;
      counts.inserted += outcome.result.inserted;
      counts.duplicate += outcome.result.duplicate;
      counts.deadLettered += outcome.result.deadLettered ?? 0;
      counts.refused += outcome.result.refused;
    } else {
      counts.batchRefused += sent.clicks;
      onTrouble(outcome.reason);
    }
    batch = null;
    batches.settle(sent);
    onSettled?.();
    const rest = restMs(now() - sentAt);
    if (rest <= 0) return;
    counts.rests += 1;
    restUntil = now() + rest;
  }

  return {
    /** Sends what waits without waiting for company, where there is a whole batch. */
    noteWaiting(): void {
      if (failuresInARow === 0 && waiting() >= CLICK_BATCH_LIMIT) rouse();
    },
    /** Sends what is left for up to `timeoutMs`. Call it when nothing is added to the queue any more. */
    async stop(timeoutMs: number): Promise<void> {
      draining = true;
      rouse();
      const timer = setTimeout(() => {
        halt.abort();
        rouse();
      }, timeoutMs);
      await finished;
      clearTimeout(timer);
    },
    counts: () => counts,
  };
}
