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
  ttlMs: number;
  negativeTtlMs: number;
  now: () => Moment;
  random: () => number;
};

/** `dirty`: keep nothing of it. `era`: when it is over, nobody may join any more, nor is a "no such code" kept. */
type Load = { startedAt: Moment; dirty: boolean; era: number; answer: Promise<Entry> };

export type Loader = ReturnType<typeof createLoader>;

/** Creates the loader. Reads are bounded in number and time by `readLink`, whose errors it passes on and never keeps. */
export function createLoader(options: LoaderOptions) {
  const { cache, readLink, ttlMs, negativeTtlMs, now, random } = options;
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

  function start(code: string): Load {
    const marks = { startedAt: sharedNow(), dirty: false, era };
    const load: Load = Object.assign(marks, { answer: fill(code, marks).finally(() => leave(code, marks)) });
    underWay.set(code, load);
    counts.loads += 1;
    return load;
  }

  function leave(code: string, marks: object): void {
    if (underWay.get(code) === marks) underWay.delete(code);
  }

  async function fill(code: string, marks: Omit<Load, "answer">): Promise<Entry> {
    const row = await readLink(code).catch((error: unknown) => {
      counts.failures += 1;
      throw error;
    });
    const life = row === null ? negativeTtlMs : ttlMs * (1 - random() * TTL_JITTER);
    const entry = makeEntry(ownText(code), row && { ...row, owner: ownName(row.owner) }, {
      loadedAt: marks.startedAt,
      ttlMs: life,
    });
    if (row === null && marks.era !== era) return entry;
    if (!marks.dirty && cache.put(entry)) return entry;
    counts.fillsRefused += 1;
    if (marks.dirty) return entry;
    throw new StaleRead();
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

  return {
    /** Asks for a code. The answer was read after every change that is applied at the time of the call. */
    load(code: string): Promise<Entry> {
      const running = underWay.get(code);
      if (running && isJoinable(running)) {
        counts.joined += 1;
        return running.answer;
      }
      detach(code);
      return start(code).answer;
    },
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
