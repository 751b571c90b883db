// Does one fault after the other, now and then two at once, and heals each of them. One seed decides which and for how long.
import { setTimeout as pause } from "node:timers/promises";
import type { Dice } from "../simulation/dice.ts";
import { drawFaults, type Fault, listFaults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { type Stage, WRITE_QUERY_MS } from "./stage.ts";

export type NemesisOptions = {
  stage: Stage;
  ttlMs: number;
  dice: Dice;
  ledger: Ledger;
  now: () => number;
  /** Nothing new is done from then on; what was done is healed at once. */
  over: AbortSignal;
  onFault: (fault: Fault, startedAt: number) => void;
  /** Ends after so many. */
  rounds?: number | undefined;
  /** Whether a fault may be drawn; all may unless it says otherwise. */
  only?: ((fault: Fault) => boolean) | undefined;
};

/** Between two faults, in TTLs: enough for something to be confirmed, and too little for everything to be calm. */
const HEALING = [0.2, 1.2] as const;
/**
 * After a fault, a write process meets the deadline of the call that it spoilt, that of one on a connection that is dead and
 * not known to be, and waits half a second before it connects again.
 */
export const RECOVERY_MS = 2 * WRITE_QUERY_MS + 500;

/** Where few faults may be drawn; enough for one in a thousand. */
const DRAWS_MAX = 10_000;

export type Nemesis = ReturnType<typeof startNemesis>;

/** Starts at once. `finished` resolves when all is done, or `over` has come, and everything is healed, and rejects when it cannot be. */
export function startNemesis(options: NemesisOptions) {
  const { stage, ttlMs, dice, ledger, now, over, onFault, only = () => true } = options;
  const { rounds = Number.POSITIVE_INFINITY } = options;
  const possible = listFaults(stage, ttlMs);
  const counts = new Map<string, number>();
  const underWay = new Set<Fault>();

  async function inflict(fault: Fault): Promise<void> {
    const kind = `${fault.place.replaceAll(/ \d+/g, "")}: ${fault.kind}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    onFault(fault, now());
    const recovered = fault.hinders ? ledger.hinder(now()) : () => {};
    underWay.add(fault);
    try {
      await fault.begin();
      await rest(fault.lastsMs, over);
    } finally {
      await fault.heal();
      underWay.delete(fault);
      recovered(now() + RECOVERY_MS);
    }
  }

  async function run(): Promise<void> {
    for (let round = 0; round < rounds && !over.aborted; round += 1) {
      await Promise.all(draw().map(inflict));
      await rest(dice.between(...HEALING) * ttlMs, over);
    }
  }

  function draw(): Fault[] {
    for (let tries = 0; tries < DRAWS_MAX; tries += 1) {
      const drawn = drawFaults(dice, possible).filter(only);
      if (drawn.length > 0) return drawn;
    }
    throw new Error("no fault may be drawn");
  }

  return {
    finished: run(),
    counts: () => new Map(counts),
    /** Numbers of the redirect processes that are cut off or stopped now. */
    cutOff: () => [...underWay].flatMap(({ redirect }) => (redirect === null ? [] : [redirect])),
  };
}

/** Waits, or until `over`. */
async function rest(ms: number, over: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal: over }).catch(() => {});
}
