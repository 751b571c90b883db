// A change log in memory for tests of the follower, which records what it does.
import type { Change } from "./cursor.ts";
import { createFollower, type Follower, type FollowOptions } from "./follow.ts";
import type { SyncAnswer, SyncRequest } from "./read-changes.ts";

export const change = (seq: number): Change => ({ seq, code: `c${seq}`, version: 2 });

/** A log in memory, and a record of everything the follower did, in order. */
export function createWorld(over: Partial<FollowOptions> = {}) {
  const log: Change[] = [change(1)];
  const events: string[] = [];
  const requests: SyncRequest[] = [];
  const waiting = new Set<{ pattern: RegExp; resolve: () => void }>();
  let mono = 0;
  let asleepMs = 0;
  let epoch = "e1";
  let registered = true;
  let ids = 0;
  let before = async () => {};

  function record(event: string): void {
    events.push(event);
    for (const wait of waiting) {
      if (!wait.pattern.test(event)) continue;
      waiting.delete(wait);
      wait.resolve();
    }
  }

  async function sync(request: SyncRequest): Promise<SyncAnswer> {
    requests.push(request);
    const from = request.from ?? log.at(-1)?.seq ?? 0;
    const changes = log.filter(({ seq }) => seq >= from).slice(0, 3);
    const answer = { registered, page: { epoch, head: log.at(-1)?.seq ?? 0, changes, limit: 3 } };
    await before();
    if (request.renewal) record(`renewed ${request.renewal.appliedSeq}`);
    return answer;
  }

  const options: FollowOptions = {
    pollIntervalMs: 0,
    ttlMs: 400_000,
    now: () => ({ mono, wall: mono + asleepMs }),
    random: () => 0,
    newInstanceId: () => `i${++ids}`,
    register: async (id) => {
      registered = true;
      record(`registered ${id}`);
    },
    sync,
    apply: (changes) => changes.length > 0 && record(`applied ${changes.map(({ seq }) => seq).join(",")}`),
    flush: (cause) => record(`flushed ${cause}`),
    onSynced: (moment) => record(`synced ${moment.mono}`),
    onTrouble: (error) => record(`trouble ${(error as Error).message}`),
    onRecovered: () => record("recovered"),
    ...over,
  };
  return {
    log,
    events,
    requests,
    options,
    /** Resolves with the next event that matches; past ones do not count. */
    next: (pattern: RegExp) => new Promise<void>((resolve) => waiting.add({ pattern, resolve })),
    advance: (ms: number) => {
      mono += ms;
    },
    sleep: (ms: number) => {
      asleepMs += ms;
    },
    failover: () => {
      epoch = "e2";
    },
    forget: () => {
      registered = false;
    },
    beforeAnswer: (act: () => Promise<void>) => {
      before = act;
    },
  };
}

const running = new Set<Follower>();

/** Starts a follower that `stopAll` ends. */
export function start(options: FollowOptions): Follower {
  const follower = createFollower(options);
  running.add(follower);
  return follower;
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((follower) => follower.stop()));
  running.clear();
}

/** A follower that has read a log of one row and acknowledged it; `since` tells what happened afterwards. */
export async function startSettled(over: Partial<FollowOptions> = {}) {
  const world = createWorld(over);
  const renewed = world.next(/^renewed 1$/);
  const follower = start(world.options);
  await renewed;
  await world.next(/^synced/);
  const begun = world.events.length;
  return { world, running: follower, since: () => world.events.slice(begun) };
}
