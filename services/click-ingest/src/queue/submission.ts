import type { Click } from "@linkfence/contracts";
import type { GivenBackReason } from "./ledger.ts";

/** How a submission ended: `stored` after the commit of all of it, with its own counts, or given back. */
export type Outcome =
  | { kind: "stored"; inserted: number; duplicate: number; unstorable: number }
  | { kind: "given-back"; reason: GivenBackReason };

export type Submission = ReturnType<typeof createSubmission>;
/** Clicks of one submission that go into one transaction. */
export type Part = { submission: Submission; clicks: readonly Click[] };

/**
 * The clicks of one waiting request. It ends once: when the last click is accounted for, or by being given back.
 * @param onEnd called at that moment, with the outcome
 */
export function createSubmission(list: readonly Click[], onEnd: (outcome: Outcome) => void) {
  const counts = { inserted: 0, duplicate: 0, unstorable: 0 };
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
    isOpen: () => open,
    /** Clicks that no transaction has taken yet. */
    waiting: () => clicks.length - Math.min(taken, clicks.length),
    take(max: number): readonly Click[] {
      const part = clicks.slice(taken, taken + max);
      taken += part.length;
      return part;
    },
    /** Accounts for clicks that were taken. After the end it changes nothing. */
    record(inserted: number, duplicate: number, unstorable: number): void {
      counts.inserted += inserted;
      counts.duplicate += duplicate;
      counts.unstorable += unstorable;
      if (counts.inserted + counts.duplicate + counts.unstorable === list.length) end({ kind: "stored", ...counts });
    },
    giveBack: (reason: GivenBackReason) => end({ kind: "given-back", reason }),
  };
}
