// What lies in places of the spool that no process has any more, as after their number was lowered, is sent from here, beside
// the process's own clicks, and counted with them.
import { setTimeout as pause } from "node:timers/promises";
import { type Drops, makeDrops } from "../spool/drops.ts";
import type { ClickPath } from "./click-path.ts";

/** How often it is looked whether all of it was sent. */
const LOOK_EVERY_MS = 100;

export type Ledger = ReturnType<ClickPath["ledger"]>;
export type ClickStats = ReturnType<ClickPath["stats"]>;

export type HeirOptions = {
  /** Opens a place and starts to send what is in it. Rejects where it cannot be used, as while another process has it. */
  open: (place: number) => Promise<ClickPath>;
  onTrouble: (place: number, error: unknown) => void;
};

/** Adds to each number of `total` that of `more`. Each has the same names. */
function add<T extends Record<string, number>>(total: T, more: T): T {
  return Object.fromEntries(Object.entries(total).map(([name, value]) => [name, value + (more[name] ?? 0)])) as T;
}

function addLedgers(total: Ledger, more: Ledger): Ledger {
  const { dropped, ...counts } = total;
  const { dropped: droppedMore, ...countsMore } = more;
  const drops: Drops = makeDrops((reason) => dropped[reason] + droppedMore[reason]);
  return { ...add(counts, countsMore), dropped: drops };
}

/** Sends what was left, one place after the other where several are taken up at once. */
export function createHeirs({ open, onTrouble }: HeirOptions) {
  /** Those that have come to their end count on. */
  const ledgers: Ledger[] = [];
  const stats: ClickStats[] = [];
  const running = new Map<number, ClickPath>();
  const stopping = new AbortController();
  let last: Promise<void> = Promise.resolve();

  async function send(place: number): Promise<void> {
    if (stopping.signal.aborted) return;
    const path = await open(place);
    running.set(place, path);
    while (path.ledger().inFlight > 0 && !stopping.signal.aborted)
      await pause(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {});
    await path.stop(0);
    running.delete(place);
    ledgers.push(path.ledger());
    stats.push(path.stats());
  }

  const all = <T>(done: readonly T[], read: (path: ClickPath) => T) => [...done, ...[...running.values()].map(read)];

  return {
    /** Takes up what lies in a place. Resolves when all of it was sent, or it cannot be; never rejects. */
    take(place: number): Promise<void> {
      last = last.then(() => send(place)).catch((error: unknown) => onTrouble(place, error));
      return last;
    },
    /** Sends no more: the rest stays where it is, for the next process. */
    async stop(): Promise<void> {
      stopping.abort();
      await last;
    },
    /** What `path` tells of itself, with all that was inherited beside it. */
    beside: (path: ClickPath): ClickPath => ({
      ...path,
      ledger: () => all(ledgers, (each) => each.ledger()).reduce(addLedgers, path.ledger()),
      stats: () => all(stats, (each) => each.stats()).reduce(add, path.stats()),
    }),
  };
}
export type Heirs = ReturnType<typeof createHeirs>;
