// When a revocation is in force everywhere. Pure; the proof is short:
// - An instance answers from memory only within its TTL from the moment before it sent its last read of the log, and only
//   while its row stood in the registry at that read. A read that was sent after the commit brought the revocation.
// - So whoever is registered and has acknowledged the change does not answer with the old target, nor does anybody whose
//   last read was sent a TTL ago. Whoever registered after a sight read the log after that.
// - A row leaves the registry when its instance has stopped answering, or was silent for so long that it is fenced.
// - After a failover a row may be missing though its instance still answers. Until the new history is settled, time
//   alone confirms.
import { fenceMs } from "./fence.ts";
import { hasApplied, type Instance, type Sight } from "./registry.ts";

export type Wanted = {
  /** Number of the change that revoked. */
  seq: number;
  /** ms of the clock by which sights are taken, read after the commit was known. */
  committedAt: number;
  /** The history in which it was committed. In another one it may be lost. */
  epoch: string;
  /** The greatest TTL that an instance may have that no sight shows. */
  unseenTtlMs: number;
};

export type Standing = {
  instances: { total: number; acknowledged: number };
  /** Who has not acknowledged it yet. */
  missing: readonly Instance[];
};

export type Verdict =
  | ({ kind: "confirmed"; by: "acknowledged" | "ttl"; afterMs: number } & Standing)
  /** In force by time alone at `fencedAt` at the latest, by the same clock. */
  | ({ kind: "waiting"; fencedAt: number } & Standing)
  /** The database goes by another history, in which the revocation has to be looked for. */
  | { kind: "history-changed" };

/**
 * Judges a revocation by a sight of the registry.
 * @param sight the last one, or null; one that was sent before the commit only says who is waited for
 * @param longestTtlMs the greatest TTL of the rows that earlier sights since the commit showed; 0 where there were none
 */
export function judgeConfirmation(wanted: Wanted, sight: Sight | null, longestTtlMs: number, now: number): Verdict {
  const { seq, committedAt, epoch } = wanted;
  const afterMs = now - committedAt;
  const seen = sight !== null && sight.sentAt >= committedAt ? sight : null;
  if (seen !== null && seen.epoch !== epoch) return { kind: "history-changed" };
  // Where no sight is of after the commit, the one before says whom to wait for, as far as is known; it confirms nothing.
  const known = sight?.epoch === epoch ? sight.instances : [];
  const missing = known.filter((instance) => !hasApplied(instance, seq, epoch));
  const total = known.length;
  const standing = { instances: { total, acknowledged: total - missing.length }, missing };
  if (seen?.settled && missing.length === 0) return { kind: "confirmed", by: "acknowledged", afterMs, ...standing };
  // A sight of before the commit counts here, too: whoever is told how long it takes is not to be told too little.
  const shownTtlMs = Math.max(longestTtlMs, ...(sight?.instances ?? []).map((instance) => instance.ttlMs));
  const ttlMs = seen?.settled ? shownTtlMs : Math.max(shownTtlMs, wanted.unseenTtlMs);
  const fencedAt = committedAt + fenceMs(ttlMs);
  // Without a sight since the commit nobody knows how long the longest TTL is.
  if (seen && now >= fencedAt) return { kind: "confirmed", by: "ttl", afterMs, ...standing };
  return { kind: "waiting", fencedAt, ...standing };
}
