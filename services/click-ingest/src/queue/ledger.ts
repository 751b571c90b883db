// Where every click that arrived has gone. At any moment
//   received = inserted + duplicate + refused + in flight + given back,
// and each number but "in flight" is the sum over the answers that were sent, so that it can be held against the
// senders' own books. A click given back may be stored none the less: the sender brings it again, as a duplicate.
import { REFUSAL_REASONS, type RefusalReason } from "../domain/click.ts";

const GIVEN_BACK_REASONS = ["full", "stopping", "deadline", "abandoned"] as const;
/** Why a batch was answered 503, or found nobody to answer (`abandoned`). */
export type GivenBackReason = (typeof GIVEN_BACK_REASONS)[number];
export type Refusals = Partial<Record<RefusalReason, number>>;
export type Ledger = ReturnType<typeof createLedger>;

/** Creates the books of one process. */
export function createLedger() {
  const counts = { received: 0, inserted: 0, duplicate: 0, inFlight: 0 };
  const refused = zeros(REFUSAL_REASONS);
  const givenBack = zeros(GIVEN_BACK_REASONS);

  return {
    /** A batch of so many clicks came in. */
    receive(clicks: number): void {
      counts.received += clicks;
      counts.inFlight += clicks;
    },
    /** A batch is answered with counts. */
    answer(inserted: number, duplicate: number, refusals: Refusals): void {
      counts.inserted += inserted;
      counts.duplicate += duplicate;
      counts.inFlight -= inserted + duplicate;
      for (const reason of REFUSAL_REASONS) {
        refused[reason] += refusals[reason] ?? 0;
        counts.inFlight -= refusals[reason] ?? 0;
      }
    },
    /** A batch goes back to its sender whole, whatever became of its clicks. */
    giveBack(clicks: number, reason: GivenBackReason): void {
      givenBack[reason] += clicks;
      counts.inFlight -= clicks;
    },
    read: () => ({ ...counts, refused: { ...refused }, givenBack: { ...givenBack } }),
  };
}

function zeros<K extends string>(names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
}
