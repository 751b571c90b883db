// Reads links on a miss, one read for all who ask for a code at the same time, with the limits that keep this safe:
// nobody joins a read that began before a change was applied, and such a read is answered to those who asked before
// the change, but never kept. A share in a read that began before the question is an answer from memory: where the log
// was not read within the TTL nobody waits for this process, so there everybody gets a read of their own.
import { type Entry, type LinkRow, type Moment, makeEntry, NEVER } from "../domain/entry.ts";
import { isWithin } from "./freshness.ts";
import type { LinkCache } from "./link-cache.ts";

/** Lives are shortened by up to this part, at random, so that entries loaded together do not end together. */
const TTL_JITTER = 0.1;

/**
 * Reads that begin within so many ms share the moment of the first: their entries count as older than they are by that
 * much, which is nothing beside a TTL of 100 ms at least, and hold one object together instead of one each.
 */
const SHARED_MOMENT_MS = 1;
/** Owners whose names are kept once for all their links. Beyond it the names are kept anew, which costs memory alone. */
const OWNERS_MAX = 10_000;

export class StaleRead extends Error {
  constructor() {
    super("the database answered with a version older than one already known");
    this.name = "StaleRead";
  }
}

export type LoaderOptions = {
  cache: LinkCache;
  readLink: (code: string) => Promise<LinkRow | null>;
  /** The same for what nobody waits for, behind all others; and that somebody waits for such a one now. */
  readBehind?: (code: string) => Promise<LinkRow | null>;
  hasten?: (code: string) => void;
  ttlMs: number;
  negativeTtlMs: number;
  now: () => Moment;
  random: () => number;
};

/**
 * Told of a load, in the turn in which it is answered: of the entry, or of null and what went wrong. A call instead of a
 * promise, as each promise between an answer and its visitors costs the more the more of them come at once.
 */
export type Told = (entry: Entry | null, error: unknown) => void;

/**
 * `dirty`: keep nothing of it. `era`: when it is over, nobody may join any more, nor is a "no such code" kept. `others`:
 * who joined; mostly there is nobody.
 */
type Load = {
  readonly code: string;
  readonly startedAt: Moment;
  readonly era: number;
  dirty: boolean;
  /** Asked for by nobody who waits. */
  isRefresh: boolean;
  readonly told: Told;
  others: Told[] | null;
};

export type Loader = ReturnType<typeof createLoader>;

/** Creates the loader. Reads are bounded in number and time by `readLink`, whose errors it passes on and never keeps. */
export function createLoader(options: LoaderOptions) {
  const { cache, readLink, readBehind = readLink, hasten = () => {}, ttlMs, negativeTtlMs, now, random } = options;
  const underWay = new Map<string, Load>();
  const counts = { loads: 0, joined: 0, failures: 0, fillsRefused: 0 };
  /** Counts on when a code may have come into being. */
  let era = 0;
  let syncedAt = NEVER;
  let lastMoment = NEVER;
  const owners = new Map<string, string>();

  function sharedNow(): Moment {
    const moment = now();
    if (!isWithin(lastMoment, moment.mono, moment.wall, SHARED_MOMENT_MS)) lastMoment = moment;
    return lastMoment;
  }

  /** The same text for all links of an owner: each answer of the database brings a new one. */
  function ownName(owner: string): string {
    const known = owners.get(owner);
    if (known !== undefined) return known;
    if (owners.size >= OWNERS_MAX) owners.clear();
    owners.set(owner, owner);
    return owner;
  }

  function start(code: string, told: Told, isRefresh: boolean): void {
    const load: Load = { code, startedAt: sharedNow(), era, dirty: false, isRefresh, told, others: null };
    underWay.set(code, load);
    counts.loads += 1;
    const read = isRefresh ? readBehind(code) : readLink(code);
    read.then(
      (row) => answer(load, row),
      (error: unknown) => {
        counts.failures += 1;
        end(load, null, error);
      },
    );
  }

  /** Nobody joins it any more, not even one of those who are told. */
  function end(load: Load, entry: Entry | null, error: unknown): void {
    if (underWay.get(load.code) === load) underWay.delete(load.code);
    load.told(entry, error);
    if (load.others) for (const told of load.others) told(entry, error);
  }

  function answer(load: Load, row: LinkRow | null): void {
    const life = row === null ? negativeTtlMs : ttlMs * (1 - random() * TTL_JITTER);
    const entry = makeEntry(ownText(load.code), row && { ...row, owner: ownName(row.owner) }, {
      loadedAt: load.startedAt,
      ttlMs: life,
    });
    if (isKept(load, entry)) end(load, entry, null);
    else end(load, null, new StaleRead());
  }

  /** Keeps what may be kept. Says whether it may be given to those who asked. */
  function isKept(load: Load, entry: Entry): boolean {
    if (entry.kind === "unknown" && load.era !== era) return true;
    if (!load.dirty && cache.put(entry)) return true;
    counts.fillsRefused += 1;
    return load.dirty;
  }

  function detach(code: string): void {
    const load = underWay.get(code);
    if (!load) return;
    load.dirty = true;
    underWay.delete(code);
  }

  function isJoinable(load: Load): boolean {
    const { mono, wall } = now();
    const isYoung = (moment: Moment) => isWithin(moment, mono, wall, ttlMs);
    return load.era === era && isYoung(load.startedAt) && isYoung(syncedAt);
  }

  function askFor(code: string, told: Told, isRefresh: boolean): void {
    const running = underWay.get(code);
    if (!running || !isJoinable(running)) {
      detach(code);
      start(code, told, isRefresh);
      return;
    }
    counts.joined += 1;
    if (running.others) running.others.push(told);
    else running.others = [told];
    if (isRefresh || !running.isRefresh) return;
    running.isRefresh = false;
    hasten(code);
  }

  /** Asks for a code. What is told was read after every change that is applied at the time of the call. */
  const ask = (code: string, told: Told) => askFor(code, told, false);

  return {
    ask,
    /** Asks for a code as `ask` does. */
    load: (code: string) =>
      new Promise<Entry>((resolve, reject) =>
        ask(code, (entry, error) => (entry === null ? reject(error) : resolve(entry))),
      ),
    /** Reads anew what is still served from memory, behind all that somebody waits for. Joins what is under way. */
    refresh: (code: string, told: Told) => askFor(code, told, true),
    detach,
    /** Everything committed before that moment has been applied. */
    synced(moment: Moment): void {
      syncedAt = moment;
    },
    /** Nothing is known to be applied any more. */
    detachAll(): void {
      syncedAt = NEVER;
      for (const code of [...underWay.keys()]) detach(code);
    },
    /** A code may have come into being since the reads under way began. */
    distrustUnknown(): void {
      era += 1;
    },
    stats: () => ({ ...counts, underWay: underWay.size }),
  };
}

/** A code of this length or more that was cut out of a request target holds the whole of that, a long query included. */
const SLICE_MIN = 13;

/** The same text without what it was cut out of. Codes are ASCII. */
function ownText(code: string): string {
  return code.length < SLICE_MIN ? code : Buffer.from(code, "latin1").toString("latin1");
}
