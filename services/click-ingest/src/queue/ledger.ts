// Where every click that arrived has gone. At any moment
//   received = inserted + duplicate + dead-lettered + refused + in flight + given back,
// and each number but "in flight" is the sum over the answers that were sent, so that it can be held against the
// senders' own books. A click given back may be stored none the less: the sender brings it again, as a duplicate.
import { DEATH_REASONS, type DeathReason, REFUSAL_REASONS, type RefusalReason } from "../domain/click.ts";

const GIVEN_BACK_REASONS = ["full", "stopping", "deadline", "abandoned", "unburied"] as const;
/** Why a batch was answered 503, or found nobody to answer (`abandoned`). `unburied`: its dead letters, or what was refused, could not be written down. */
export type GivenBackReason = (typeof GIVEN_BACK_REASONS)[number];
/** What became of the clicks of one batch; their sum is its size. */
export type Account = {
  inserted: number;
  duplicate: number;
  deadLettered: Partial<Record<DeathReason, number>>;
  refused: Partial<Record<RefusalReason, number>>;
};
export type Ledger = ReturnType<typeof createLedger>;

/** Creates the books of one process. */
export function createLedger() {
  const counts = { received: 0, inserted: 0, duplicate: 0, inFlight: 0 };
  const deadLettered = zeros(DEATH_REASONS);
  const refused = zeros(REFUSAL_REASONS);
  const givenBack = zeros(GIVEN_BACK_REASONS);

  return {
    /** A batch of so many clicks came in. */
    receive(clicks: number): void {
      counts.received += clicks;
      counts.inFlight += clicks;
    },
    /** A batch is answered with counts. */
    answer(account: Account): void {
      const { inserted, duplicate } = account;
      counts.inserted += inserted;
      counts.duplicate += duplicate;
      counts.inFlight -= inserted + duplicate + add(deadLettered, account.deadLettered) + add(refused, account.refused);
    },
    /** A batch goes back to its sender whole, whatever became of its clicks. */
    giveBack(clicks: number, reason: GivenBackReason): void {
      givenBack[reason] += clicks;
      counts.inFlight -= clicks;
    },
    read: () => ({
      ...counts,
      deadLettered: { ...deadLettered },
      refused: { ...refused },
      givenBack: { ...givenBack },
    }),
  };
}

/** Adds by name, and returns the sum of what was added. */
function add<K extends string>(totals: Record<K, number>, added: Partial<Record<K, number>>): number {
  let sum = 0;
  for (const [name, count] of Object.entries(added) as [K, number][]) {
    totals[name] += count;
    sum += count;
  }
  return sum;
}

function zeros<K extends string>(names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
}
