export {
  type Change,
  type FlushCause,
  judgePage,
  type Page,
  type Position,
  readFrom,
  type Verdict,
} from "./cursor.ts";
export { createFollower, type Follower, type FollowOptions, type Moment, type RestartCause } from "./follow.ts";
export { PAGE_LIMIT, type Renewal, readChanges, type SyncAnswer, type SyncRequest } from "./read-changes.ts";
export { createPauses, type StartTimer, startTimer } from "./timer.ts";
export { createWake, type Wake, type WakeOptions, type WakeState, type WakeTiming } from "./wake.ts";
