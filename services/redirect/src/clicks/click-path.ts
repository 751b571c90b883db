// The way of a click, put together: ring, drain, spool, queue, sender; and its ledger, which closes at every moment.
import { type DropReport, KILLED } from "@linkfence/contracts";
import type { Start } from "../spool/account.ts";
import { type Drops, makeDrops, NO_DROPS } from "../spool/drops.ts";
import type { Counted, Spool } from "../spool/open-spool.ts";
import { createClickBatches } from "./click-batches.ts";
import { createClickDrain, type DrainOptions } from "./click-drain.ts";
import { createClickQueue } from "./click-queue.ts";
import type { ClickRing } from "./click-ring.ts";
import { createClickSender, type SenderOptions } from "./click-sender.ts";
import { restMs } from "./give-way.ts";

/** A usual click has 300 bytes as JSON. What the ring's capacity is to clicks before, this is to those behind it. */
const MEMORY_BYTES_PER_CLICK = 512;
/** Clicks wait so long for company on their way to the ingest, at the most; without a spool they do so in the ring. */
const LINGER_MS = 100;

export type ClickPathOptions = Pick<SenderOptions, "send" | "now" | "random" | "onTrouble"> &
  Pick<DrainOptions, "newClickId" | "countryOf"> & {
    ring: ClickRing;
    /** This process. */
    start: Start;
    /** Clicks that the ring can hold. */
    capacity: number;
    spool: Spool | null;
    /** Share of the time since it was last asked in which this process had something to do, from 0 to 1. */
    utilization: () => number;
    /** Tells the ingest what was dropped, at the very end. May reject. */
    tellDrops: (report: DropReport) => Promise<void>;
    /** Told when that failed: of how many clicks the statistics will not know. */
    onUntold: (dropped: number, error: unknown) => void;
  };

export type ClickPath = ReturnType<typeof createClickPath>;

/** Starts carrying clicks at once, those first that an earlier process left in the spool. */
export function createClickPath(options: ClickPathOptions) {
  const { ring, start, capacity, spool, utilization, newClickId, countryOf, tellDrops, onUntold, ...sending } = options;
  // Without a spool it is the ring that is bounded.
  const queue = createClickQueue(spool === null ? Number.POSITIVE_INFINITY : capacity * MEMORY_BYTES_PER_CLICK);
  for (const left of spool?.left ?? []) queue.addLeft(left);
  const recovered = queue.clicks();
  const batches = createClickBatches(queue, spool);
  spool?.watch((segment) => spool.settle(segment, queue.lose(segment)));
  let droppedStopped = 0;
  /** Of what still stands in the queue at the end, the part that is counted as dropped. */
  let givenUp = 0;

  const sender = createClickSender({
    ...sending,
    batches,
    waiting: queue.clicks,
    lingerMs: spool === null ? 0 : LINGER_MS,
    onSettled: () => spool === null && drain.rouse(),
    restMs: (tookMs) =>
      spool === null
        ? 0
        : restMs({ utilization: utilization(), tookMs, spoolShare: spool.share(), unplaced: queue.unplaced() }),
  });
  const drain = createClickDrain({
    ...{ ring, queue, spool, newClickId, countryOf },
    onAdded: sender.noteWaiting,
    onTurn: () => spool?.tick(ring.stats().accepted, counted),
  });

  function drops(): Drops {
    const counts: Drops = {
      "ring-full": ring.stats().droppedFull,
      "spool-full": drain.dropped(),
      "batch-refused": sender.counts().batchRefused,
      stopped: droppedStopped,
      damaged: batches.counts().damaged,
    };
    return makeDrops((reason) => counts[reason]);
  }

  /** What the spool writes down. */
  function counted(): Counted {
    const { settled, unspooled, leftSettled } = batches.counts();
    return {
      drops: drops(),
      settled,
      unspooled: unspooled + ring.stats().droppedFull + drain.dropped() + droppedStopped,
      left: recovered - leftSettled,
      front: queue.front(),
    };
  }

  /** Gives up what is in memory alone, and counts it. */
  function giveUp(): void {
    givenUp = queue.unplaced();
    droppedStopped += givenUp + ring.take(Number.MAX_SAFE_INTEGER).length;
    spool?.disown();
  }

  /**
   * What was dropped, for the statistics: also by earlier processes on the spool, whose last words may not have arrived. Of
   * clicks in segments only what is written down, as the next process sends the others again. `killed` is what earlier ones
   * may have lost by their unclean ends, at the most, and `killed-unknown` how many of these ends may have taken any number.
   */
  function dropReport(): DropReport {
    const { incarnation, at: since } = spool?.first ?? start;
    const own = spool?.told(drops()) ?? drops();
    const earlier = spool?.earlier ?? { lost: 0, unknown: 0, drops: NO_DROPS };
    const counts = Object.entries({
      ...makeDrops((reason) => earlier.drops[reason] + own[reason]),
      [KILLED.atMost]: earlier.lost,
      [KILLED.unknown]: earlier.unknown,
    });
    const totals = counts.map(([reason, total]) => ({ reason, total })).filter(({ total }) => total > 0);
    return { incarnation, since, totals };
  }

  return {
    /**
     * Sends what is left for up to `timeoutMs`. What remains then is in the spool, for the next process; what is in memory
     * alone is counted as dropped. Call it when no redirect can be answered any more.
     */
    async stop(timeoutMs: number): Promise<void> {
      const endsAt = sending.now() + timeoutMs;
      await drain.stop();
      await sender.stop(Math.max(0, endsAt - sending.now()));
      giveUp();
      const { left } = counted();
      await spool?.close(counted, queue.clicks() - left - givenUp);
      // Where there is a spool, the next process on it tells of them.
      if (spool === null && droppedStopped > 0)
        await tellDrops(dropReport()).catch((error: unknown) => onUntold(droppedStopped, error));
    },
    /**
     * `accepted + recovered = inserted + duplicate + deadLettered + refused + dropped + inFlight`, at every moment.
     * `recovered`: of earlier processes, found in the spool.
     */
    ledger() {
      const { accepted, waiting } = ring.stats();
      const { inserted, duplicate, deadLettered, refused } = sender.counts();
      const inFlight = waiting + drain.underWay() + queue.clicks() - givenUp;
      const found = recovered + batches.counts().found;
      return { accepted, recovered: found, inserted, duplicate, deadLettered, refused, dropped: drops(), inFlight };
    },
    dropReport,
    stats: () => ({
      batches: sender.counts().batches,
      failures: sender.counts().failures,
      rests: sender.counts().rests,
      readFailures: batches.counts().readFailures,
      memoryBytes: queue.bytes(),
      /** Clicks that the next process on the spool will find, where this one ends now. */
      kept: queue.clicks() - queue.unplaced(),
      inRing: ring.stats().waiting + drain.underWay(),
      /** Clicks that would be lost if this process were killed now. */
      atRisk: ring.stats().waiting + drain.underWay() + queue.unplaced() - givenUp,
    }),
  };
}
