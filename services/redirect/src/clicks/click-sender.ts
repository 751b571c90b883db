// Carries clicks from the ring to the ingest. A batch gets its ids once, and is kept until the ingest says that it is
// stored; sending it again is safe, because the ingest tells clicks apart by their ids. Nothing here is awaited by a
// redirect.
import { CLICK_BATCH_LIMIT, type Click, type ClickBatchResult } from "@linkfence/contracts";
import { createPauses } from "@linkfence/link-feed";
import { makeClick } from "../domain/click.ts";
import type { ClickRing } from "./click-ring.ts";

/** How often an idle ring is looked at. With up to 500 clicks in a batch, encoding one takes well under a millisecond. */
const IDLE_MS = 100;
const BATCH = Math.min(500, CLICK_BATCH_LIMIT);
/** First and longest pause after a failure; each is shortened by up to half, at random. */
const BACKOFF_MS = { first: 100, longest: 5000 };

/** What became of one attempt. `refused`: the ingest will never take this batch. `failed`: it may, later. */
export type SendResult = { kind: "stored"; result: ClickBatchResult } | { kind: "refused" | "failed"; reason: string };

export type SenderOptions = {
  ring: ClickRing;
  send: (clicks: readonly Click[], signal: AbortSignal) => Promise<SendResult>;
  /** Makes a UUIDv7 that carries the given time in ms since 1970. */
  newClickId: (at: number) => string;
  random: () => number;
  /** Told once for each run of failures, and with null when it is over. */
  onTrouble: (reason: string | null) => void;
};

export type ClickSender = ReturnType<typeof createClickSender>;

/** Starts sending at once, in the background, until `stop`. */
export function createClickSender(options: SenderOptions) {
  const { ring, send, newClickId, random, onTrouble } = options;
  const counts = {
    inserted: 0,
    duplicate: 0,
    deadLettered: 0,
    refused: 0,
    droppedRefused: 0,
    droppedStopped: 0,
    batches: 0,
    failures: 0,
  };
  const halt = new AbortController();
  let batch: Click[] = [];
  let failuresInARow = 0;
  let draining = false;
  const { pause, rouse } = createPauses();
  const finished = run();

  async function run(): Promise<void> {
    while (!halt.signal.aborted) {
      if (batch.length === 0) batch = ring.take(BATCH).map((facts) => makeClick(newClickId(facts.at), facts));
      if (batch.length === 0) {
        if (draining) return;
        await pause(IDLE_MS);
        continue;
      }
      const outcome = await send(batch, halt.signal);
      if (halt.signal.aborted && outcome.kind === "failed") return;
      await settle(outcome);
    }
  }

  async function settle(outcome: SendResult): Promise<void> {
    if (outcome.kind === "failed") {
      counts.failures += 1;
      if (failuresInARow === 0) onTrouble(outcome.reason);
      const ms = Math.min(BACKOFF_MS.longest, BACKOFF_MS.first * 2 ** Math.min(failuresInARow, 10));
      failuresInARow += 1;
      await pause(ms * (1 - random() / 2));
      return;
    }
    if (failuresInARow > 0) onTrouble(null);
    failuresInARow = 0;
    if (outcome.kind === "stored") {
      counts.batches += 1;
      counts.inserted += outcome.result.inserted;
      counts.duplicate += outcome.result.duplicate;
      counts.deadLettered += outcome.result.deadLettered ?? 0;
      counts.refused += outcome.result.refused;
    } else {
      counts.droppedRefused += batch.length;
      onTrouble(outcome.reason);
    }
    batch = [];
  }

  return {
    /**
     * Sends what is left for up to `timeoutMs`; what remains then is counted as dropped.
     * Call it when no redirect can be answered any more.
     */
    async stop(timeoutMs: number): Promise<void> {
      draining = true;
      rouse();
      const timer = setTimeout(() => {
        halt.abort();
        rouse();
      }, timeoutMs);
      await finished;
      clearTimeout(timer);
      counts.droppedStopped += batch.length + ring.take(Number.MAX_SAFE_INTEGER).length;
      batch = [];
    },
    /** `accepted = inserted + duplicate + deadLettered + refused + dropped + inFlight`, at every moment. */
    ledger() {
      const { accepted, droppedFull, waiting } = ring.stats();
      const { inserted, duplicate, deadLettered, refused, droppedRefused, droppedStopped } = counts;
      const dropped = { "ring-full": droppedFull, "batch-refused": droppedRefused, stopped: droppedStopped };
      return { accepted, inserted, duplicate, deadLettered, refused, dropped, inFlight: waiting + batch.length };
    },
    stats: () => ({ batches: counts.batches, failures: counts.failures }),
  };
}
