// What a write process concludes from watching the registry for a while, by its own clock alone. Pure.
import { fenceMs, silenceMs } from "./fence.ts";
import type { Sight } from "./registry.ts";

type Sighted = { renewals: number; unchangedSince: number };
/** By `at` the log had come to `seq`. */
type Head = { seq: number; at: number };

/** What was seen so far: since when the current history, and since when each row's count has not changed. */
export type Memory = {
  epoch: string | null;
  since: number;
  rows: ReadonlyMap<string, Sighted>;
  heads: readonly Head[];
};

export const NOTHING_SEEN: Memory = { epoch: null, since: 0, rows: new Map(), heads: [] };

/** A head a second is remembered for longer than any TTL lasts (an hour); the older half goes first. */
const HEADS_MAX = 8192;

export type Upkeep = {
  memory: Memory;
  /** Rows of instances that were silent for so long that they answer nothing from memory. */
  dead: readonly { id: string; renewals: number }[];
  /** The history may be settled: whoever was registered in the one before is here again, or fenced. */
  settle: boolean;
};

/**
 * Takes in one sight.
 * @param unseenTtlMs the greatest TTL that an instance may have that no sight shows
 */
export function watch(memory: Memory, sight: Sight, unseenTtlMs: number): Upkeep {
  const { epoch, sentAt, receivedAt, instances, settled, head } = sight;
  const same = memory.epoch === epoch;
  const since = same ? memory.since : receivedAt;
  const rows = new Map<string, Sighted>();
  for (const { id, renewals } of instances) {
    const before = same ? memory.rows.get(id) : undefined;
    rows.set(id, before?.renewals === renewals ? before : { renewals, unchangedSince: receivedAt });
  }
  const dead = instances
    .filter(({ id, ttlMs }) => sentAt - (rows.get(id)?.unchangedSince ?? receivedAt) >= silenceMs(ttlMs))
    .map(({ id, renewals }) => ({ id, renewals }));
  const longest = Math.max(unseenTtlMs, ...instances.map(({ ttlMs }) => ttlMs));
  const heads = noteHead(same ? memory.heads : [], { seq: head, at: receivedAt });
  return { memory: { epoch, since, rows, heads }, dead, settle: !settled && sentAt - since >= fenceMs(longest) };
}

function noteHead(heads: readonly Head[], head: Head): readonly Head[] {
  const last = heads.at(-1);
  if (last && last.seq >= head.seq) return heads;
  return [...(heads.length < HEADS_MAX ? heads : heads.slice(HEADS_MAX / 2)), head];
}

/** A time by which a change was committed, as far as is known; null where the log was not seen to reach it. */
export function committedBy({ heads }: Memory, seq: number): number | null {
  let [low, high] = [0, heads.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((heads[middle]?.seq ?? 0) >= seq) high = middle;
    else low = middle + 1;
  }
  return heads[low]?.at ?? null;
}
