import type { Click } from "@linkfence/contracts";
import type { GivenBackReason } from "./ledger.ts";

/** Who sent clicks, and how each came, as JSON. */
export type Origin = { sender: string; payloadOf: (click: Click) => string };
/**
 * How many clicks were new, stored before, and refused by the database and kept as dead letters; those of days that are no
 * longer; and those that were refused and kept nowhere.
 */
export type Fates = {
  inserted: number;
  duplicate: number;
  buried: number;
  late: readonly Click[];
  noRoom: readonly Click[];
};
/** How a submission ended: `stored` after the commit of all of it, with its own counts, or given back. */
export type Outcome = ({ kind: "stored" } & Fates) | { kind: "given-back"; reason: GivenBackReason };

export type Submission = ReturnType<typeof createSubmission>;
/** Clicks of one submission that go into one transaction. */
export type Part = { submission: Submission; clicks: readonly Click[] };

/**
 * The clicks of one waiting request. It ends once: when the last click is accounted for, or by being given back.
 * @param onEnd called at that moment, with the outcome
 */
export function createSubmission(list: readonly Click[], origin: Origin, onEnd: (outcome: Outcome) => void) {
  const counts = { inserted: 0, duplicate: 0, buried: 0 };
  const late: Click[] = [];
  const noRoom: Click[] = [];
  let clicks = list;
  let taken = 0;
  let open = true;

  function end(outcome: Outcome): void {
    if (!open) return;
    open = false;
    // Whoever still holds the submission must not hold its clicks.
    clicks = [];
    onEnd(outcome);
  }

  return {
    origin,
    isOpen: () => open,
    /** Clicks that no transaction has taken yet. */
    waiting: () => clicks.length - Math.min(taken, clicks.length),
    take(max: number): readonly Click[] {
      const part = clicks.slice(taken, taken + max);
      taken += part.length;
      return part;
    },
    /** Accounts for clicks that were taken. After the end it changes nothing. */
    record(fates: Partial<Fates>): void {
      counts.inserted += fates.inserted ?? 0;
      counts.duplicate += fates.duplicate ?? 0;
      counts.buried += fates.buried ?? 0;
      late.push(...(fates.late ?? []));
      noRoom.push(...(fates.noRoom ?? []));
      const settled = counts.inserted + counts.duplicate + counts.buried + late.length + noRoom.length;
      if (settled === list.length) end({ kind: "stored", ...counts, late, noRoom });
    },
    giveBack: (reason: GivenBackReason) => end({ kind: "given-back", reason }),
  };
}
