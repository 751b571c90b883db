// Carries clicks from the ring to where they wait to be sent. Each is made, with its id, and encoded once, before the first
// attempt to store or send it; then the group is written to the spool, by one write, and only then may it be sent. A request
// waits for none of this: while a disk is slow, the ring fills.
import { CLICK_BATCH_LIMIT } from "@linkfence/contracts";
import { createPauses } from "@linkfence/link-feed";
import type { ClickFacts } from "../domain/click.ts";
import { encodeFrames } from "../spool/frame.ts";
import type { Spool } from "../spool/open-spool.ts";
import type { ClickQueue } from "./click-queue.ts";
import type { ClickRing } from "./click-ring.ts";
import { createClickText } from "./click-text.ts";

/**
 * With a spool: a killed process loses what came in this time, and an idle one wakes up 200 times a second for it, which
 * takes less than a hundredth of a core.
 */
const SPOOL_EVERY_MS = 5;
/** Encoding so many takes about a millisecond, for which requests wait. */
const GROUP = 500;
/** Without one, clicks wait in the ring, for company. */
const EVERY_MS = 100;

export type DrainOptions = {
  ring: ClickRing;
  queue: ClickQueue;
  spool: Spool | null;
  /** Makes a UUIDv7 that carries the given time in ms since 1970. */
  newClickId: (at: number) => string;
  /** The country that an origin, as the ring holds it, tells of. */
  countryOf: (origin: string) => string | undefined;
  /** Told each time that clicks were added to the queue. */
  onAdded: () => void;
  /** Told each time that it has looked at the ring. */
  onTurn: () => void;
};

/** Starts draining at once, in the background, until `stop`. */
export function createClickDrain(options: DrainOptions) {
  const { ring, queue, spool, newClickId, countryOf, onAdded, onTurn } = options;
  const clickText = createClickText(countryOf);
  // Without a spool the queue holds one batch, and the ring, which is bounded, all the others.
  const [group, everyMs] = spool === null ? [CLICK_BATCH_LIMIT, EVERY_MS] : [GROUP, SPOOL_EVERY_MS];
  let underWay = 0;
  let dropped = 0;
  let ending = false;
  const { pause, rouse } = createPauses();
  // In a turn of its own: whoever starts this has not got it in hand yet.
  const finished = Promise.resolve().then(run);

  async function run(): Promise<void> {
    for (;;) {
      onTurn();
      await storeAgain();
      const isFree = spool !== null || ending || queue.clicks() === 0;
      const waiting = ring.stats().waiting;
      if (isFree && (waiting >= group || (ending && waiting > 0))) await store(ring.take(group));
      else if (ending && waiting === 0) return;
      else {
        await pause(everyMs);
        if (isFree && !ending) await store(ring.take(group));
      }
    }
  }

  async function store(facts: readonly ClickFacts[]): Promise<void> {
    if (facts.length === 0) return;
    underWay = facts.length;
    const frames = encodeFrames(facts.map((each) => clickText(newClickId(each.at), each)));
    const stored = spool === null ? "refused" : await spool.append(frames, facts.length);
    underWay = 0;
    if (!queue.add(frames, facts.length, stored)) {
      dropped += facts.length;
      // A part of them may be in a segment; nobody is to find them there.
      if (stored === "uncertain") spool?.disown();
    }
    onAdded();
  }

  /**
   * Writes again what a segment held that has lost its name. Before anything else is written, so that segments have clicks in the
   * order of the queue; and once, as what is refused now is behind others later.
   */
  async function storeAgain(): Promise<void> {
    if (spool === null) return;
    for (const stretch of queue.takeHomeless()) {
      const { frames, clicks } = stretch;
      if (frames === null || clicks === 0) continue;
      const stored = await spool.append(frames, clicks);
      if (!queue.place(stretch, stored) && typeof stored !== "string") spool.settle(stored.segment, clicks);
    }
  }

  return {
    /** Looks at the ring at once: the queue may have room again. */
    rouse,
    /** Resolves when the ring is empty. Call it when no redirect can be answered any more. */
    stop(): Promise<void> {
      ending = true;
      rouse();
      return finished;
    },
    /** Clicks taken from the ring that are not in the queue yet. */
    underWay: () => underWay,
    /** Clicks for which there was no room. */
    dropped: () => dropped,
  };
}
