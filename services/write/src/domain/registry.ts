/** One redirect process, as its row in the registry says. */
export type Instance = {
  id: string;
  address: string;
  /** Its CACHE_TTL_MS. */
  ttlMs: number;
  /** False where neither polls nor notifications lead it to the log: then nothing it says is an acknowledgement. */
  followsFeed: boolean;
  /** The history of the database in which it applied changes, and the number of the last of them. */
  epoch: string;
  appliedSeq: number;
  /** Counts up with each renewal. */
  renewals: number;
};

/**
 * One look at the registry, in one snapshot, which was taken between the two readings of a clock that never steps, in ms.
 * What was there before the snapshot was there before `receivedAt`; what is there still, is at `sentAt` or later.
 */
export type Sight = {
  sentAt: number;
  receivedAt: number;
  epoch: string;
  /** Every row that can matter in this history is known to be here. */
  settled: boolean;
  /** The newest change in the log; 0 where it is empty. */
  head: number;
  instances: readonly Instance[];
};

/** Says whether an instance has said that it applied everything up to a change. */
export function hasApplied(instance: Instance, seq: number, epoch: string): boolean {
  return instance.followsFeed && instance.epoch === epoch && instance.appliedSeq >= seq;
}
