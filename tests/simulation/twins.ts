// The product with one rule taken out, each by a part that is put in the place of the real one. The simulator has to
// find what each of them does wrong.
import type { Change, FollowOptions, SyncAnswer } from "@linkfence/link-feed";
import type { LinkLookup } from "../../services/redirect/src/cache/link-lookup.ts";
import type { Loader } from "../../services/redirect/src/cache/loader.ts";
import { type Entry, type Moment, NEVER } from "../../services/redirect/src/domain/entry.ts";
import { fenceMs, silenceMs } from "../../services/write/src/domain/fence.ts";
import type { Sight } from "../../services/write/src/domain/registry.ts";
import type { RegistryStore } from "../../services/write/src/store/registry.ts";
import type { Dice } from "./dice.ts";
import type { Process } from "./process.ts";

type Registry = Pick<RegistryStore, "look" | "settle" | "remove">;

export type Twin = {
  name: string;
  /** What is taken out, as a sentence without a full stop. */
  change: string;
  /** A seed that shows the damage, as long as nothing changes in what seeds mean: to be tried first. */
  shownBy: number;
  /** False: a revocation draws its number before it takes the lock. */
  lockFirst?: boolean;
  /** True: the database counts renewals, and counts anew what a crash took back. */
  countsRenewals?: boolean;
  /** Times by which clock rates differ more than the product assumes. */
  rateErrors?: number;
  loader?: (create: () => Loader) => Loader;
  lookup?: (real: LinkLookup, at: { process: Process; ttlMs: number }) => LinkLookup;
  follow?: (real: FollowOptions, at: { process: Process; lookup: LinkLookup; dice: Dice }) => FollowOptions;
  registry?: (real: Registry, at: { process: Process; maxTtlMs: number }) => Registry;
};

/** The product as it is. */
export const PRODUCT: Twin = { name: "product", change: "nothing is taken out", shownBy: 0 };

/** Found by one schedule in some millions, and tried with that one alone. */
export const COUNTING_DATABASE: Twin = {
  name: "counting-database",
  change: "renewals are counted by a database that may forget some",
  shownBy: 300_802_139,
  countsRenewals: true,
};

/** Later than any other moment. */
const FOREVER: Moment = { mono: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY };

/** A flag that each read of the log raises, and a timer takes down. */
function fenceByTimer(real: LinkLookup, { process, ttlMs }: { process: Process; ttlMs: number }): LinkLookup {
  let up = false;
  let cancel = () => {};
  let syncedAt = FOREVER;
  return {
    ...real,
    // As of the last read of the log everything is young.
    find: (code, _mono, _wall) => (up ? real.find(code, syncedAt.mono, syncedAt.wall) : undefined),
    synced(moment) {
      real.synced(moment);
      syncedAt = moment;
      up = true;
      cancel();
      cancel = process.after(ttlMs, () => {
        up = false;
      });
    },
  };
}

/** A new loader for each change: nobody joins what the old one has under way, and nothing marks that. */
function forgetMarks(create: () => Loader): Loader {
  let current = create();
  let syncedAt = NEVER;
  const detachAll = () => {
    current = create();
    current.synced(syncedAt);
  };
  return {
    ask: (code, told) => current.ask(code, told),
    load: (code) => current.load(code),
    refresh: (code, told) => current.refresh(code, told),
    detach: detachAll,
    detachAll,
    synced(moment) {
      syncedAt = moment;
      current.synced(moment);
    },
    distrustUnknown: () => current.distrustUnknown(),
    stats: () => current.stats(),
  };
}

/** Whoever asks gets a share in the read under way, however old it is. */
function joinAnything(create: () => Loader): Loader {
  const real = create();
  const underWay = new Map<string, Promise<Entry>>();
  const ask: Loader["ask"] = (code, told) => {
    const load = underWay.get(code) ?? real.load(code);
    underWay.set(code, load);
    const leave = () => void underWay.delete(code);
    load.then(leave, leave);
    load.then(
      (entry) => told(entry, null),
      (error: unknown) => told(null, error),
    );
  };
  return {
    ...real,
    ask,
    refresh: ask,
  };
}

/** Reads as if the row it stands at were always there, and the one it remembers. */
function trustNumbers(real: FollowOptions): FollowOptions {
  let last: Change | undefined;
  return {
    ...real,
    async sync(request): Promise<SyncAnswer> {
      const answer = await real.sync(request);
      const { page } = answer;
      const remembered = request.from === null ? undefined : last;
      const newer = remembered ? page.changes.filter(({ seq }) => seq > remembered.seq) : page.changes;
      const changes = remembered ? [remembered, ...newer] : newer;
      last = changes.at(-1);
      return { ...answer, page: { ...page, changes } };
    },
  };
}

/** Beside the product's janitor one of its own, which counts how long a row has not changed by `clock`. */
function withJanitor(real: Registry, clock: () => number, deadAfterMs: (ttlMs: number) => number): Registry {
  let seen = new Map<string, { renewals: number; since: number }>();

  function judge(sight: Sight, sentAt: number): { id: string; renewals: number }[] {
    const rows = new Map<string, { renewals: number; since: number }>();
    for (const { id, renewals } of sight.instances) {
      const before = seen.get(id);
      rows.set(id, before?.renewals === renewals ? before : { renewals, since: clock() });
    }
    seen = rows;
    return sight.instances.filter(({ id, ttlMs }) => sentAt - (rows.get(id)?.since ?? sentAt) >= deadAfterMs(ttlMs));
  }

  return {
    ...real,
    async look() {
      const sentAt = clock();
      const sight = await real.look();
      const dead = judge(sight, sentAt);
      if (dead.length > 0) real.remove(dead).catch(() => {});
      return sight;
    },
  };
}

export const TWINS: readonly Twin[] = [
  {
    name: "late-lock",
    change: "a revocation takes its lock after it has drawn its number",
    shownBy: 8312,
    lockFirst: false,
  },
  { name: "timer-fence", change: "a timer says when the memory is too old", shownBy: 18, lookup: fenceByTimer },
  { name: "no-dirty-mark", change: "a read that a change has overtaken is kept", shownBy: 11559, loader: forgetMarks },
  {
    name: "old-load",
    change: "a request joins a read that began before a change was applied",
    shownBy: 359,
    loader: joinAnything,
  },
  {
    name: "early-ack",
    change: "a change is acknowledged before it is applied",
    shownBy: 1,
    follow: (real, { process, dice }) => ({
      ...real,
      apply: (changes) => {
        if (changes.length > 0) process.after(dice.delay(real.ttlMs / 20), () => real.apply(changes));
      },
    }),
  },
  {
    name: "late-lease",
    change: "the memory is young for a TTL from when the log's answer came, not from when it was asked for",
    shownBy: 4048,
    follow: (real) => ({ ...real, onSynced: () => real.onSynced(real.now()) }),
  },
  {
    name: "wall-janitor",
    change: "rows are removed by the wall clock",
    shownBy: 1517,
    registry: (real, { process }) => withJanitor(real, process.wall, silenceMs),
  },
  {
    name: "short-janitor",
    change: "rows are removed when they were silent for a TTL, as if each read of the log were a renewal",
    shownBy: 307,
    registry: (real, { process }) => withJanitor(real, process.mono, fenceMs),
  },
  {
    name: "unsettled",
    change: "acknowledgements confirm right after a standby took over, when rows may be missing",
    shownBy: 1720,
    registry: (real) => ({ ...real, look: async () => ({ ...(await real.look()), settled: true }) }),
  },
  { name: "no-overlap", change: "a reader does not look at the row it stands at", shownBy: 5200, follow: trustNumbers },
  {
    name: "fast-clocks",
    change: "clock rates differ by ten times as much as is assumed",
    shownBy: 307,
    rateErrors: 10,
  },
];
