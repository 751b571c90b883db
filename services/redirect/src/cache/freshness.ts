// The rule for serving from memory. It is asked at the moment of the decision, after the last await, with clocks read
// there and then: a timer that should have fired has not, in a process that was stopped or busy.
//
// Both clocks are asked. The one that never steps stands still while a machine is suspended; the wall clock does not,
// but may be set back. Either one past the bound is enough to refuse.
import type { Entry, Moment } from "../domain/entry.ts";

/** Says whether less than `ms` have passed since `moment`, by both clocks. */
export function isWithin(moment: Moment, mono: number, wall: number, ms: number): boolean {
  return mono - moment.mono < ms && wall - moment.wall < ms;
}

/**
 * Says whether an entry may be answered from memory at this instant.
 * @param syncedAt moment up to which every change is known to be applied, and at which this process stood in the
 *   registry: nobody waits for a process that does not, so it must not answer from memory, whether it is told of changes or not
 */
export function isServable(entry: Entry, mono: number, wall: number, syncedAt: Moment): boolean {
  if (!isWithin(entry.loadedAt, mono, wall, entry.ttlMs)) return false;
  return entry.kind === "unknown" || isWithin(syncedAt, mono, wall, entry.ttlMs);
}

/** Part of its life after which an entry that is asked for is asked anew in the background. */
const REFRESH_AFTER = 0.8;

/** Says whether a servable entry nears the end of its life. */
export function isAgeing(entry: Entry, mono: number): boolean {
  return mono - entry.loadedAt.mono >= entry.ttlMs * REFRESH_AFTER;
}
