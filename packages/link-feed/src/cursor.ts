// Where a reader stands in the change log, and what a page it read means. Pure.
//
// A reader never trusts a number alone. It remembers the last row it applied and reads from that row on, itself
// included: if the row that comes back is not the one remembered, the log was trimmed or history was replaced (a
// standby that lacked the tail was promoted and gave the number out again), and nothing that was cached can be trusted.

/** One row of the log: link `code` reached `version` by the change numbered `seq`. */
export type Change = { seq: number; code: string; version: number };

/** Where a reader stands. `last` is null when the log had no row yet. */
export type Position = { epoch: string; last: Change | null };

/** What one read of the log brought: rows from the reader's own on, ascending, at most `limit` of them. */
export type Page = { epoch: string; head: number; changes: readonly Change[]; limit: number };

export type FlushCause = "epoch-changed" | "went-back" | "trimmed" | "diverged" | "disordered";

export type Verdict =
  /** Apply `fresh` in order, then stand at `position`. With `complete`, nothing committed before the read is missing. */
  | { kind: "apply"; fresh: readonly Change[]; position: Position; complete: boolean }
  /** Forget everything that was cached and start anew, without a position. */
  | { kind: "flush"; cause: FlushCause };

/** First log number to ask for: the remembered row's own, or 0 where there was none, or null to start at the head. */
export function readFrom(position: Position | null): number | null {
  if (position === null) return null;
  return position.last?.seq ?? 0;
}

/**
 * Judges a page that was read from `readFrom(position)`.
 * Without a position the page holds the newest row alone, and the reader takes its stand there.
 */
export function judgePage(position: Position | null, page: Page): Verdict {
  const { epoch, changes } = page;
  if (position === null) {
    return { kind: "apply", fresh: [], position: { epoch, last: changes.at(-1) ?? null }, complete: true };
  }
  if (epoch !== position.epoch) return { kind: "flush", cause: "epoch-changed" };
  if (!isAscending(changes)) return { kind: "flush", cause: "disordered" };
  const cause = overlapFault(position.last, changes[0]);
  if (cause) return { kind: "flush", cause };
  const fresh = position.last === null ? changes : changes.slice(1);
  const last = fresh.at(-1) ?? position.last;
  return { kind: "apply", fresh, position: { epoch, last }, complete: changes.length < page.limit };
}

/** The first number that is ever given out. Logs lose their oldest rows first: where this one is, nothing is missing. */
const FIRST_SEQ = 1;

function overlapFault(remembered: Change | null, first: Change | undefined): FlushCause | undefined {
  if (remembered === null) return first === undefined || first.seq <= FIRST_SEQ ? undefined : "trimmed";
  if (first === undefined) return "went-back";
  if (first.seq !== remembered.seq) return "trimmed";
  if (first.code !== remembered.code || first.version !== remembered.version) return "diverged";
  return undefined;
}

function isAscending(changes: readonly Change[]): boolean {
  return changes.every((change, index) => index === 0 || (changes[index - 1]?.seq ?? 0) < change.seq);
}
