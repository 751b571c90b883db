// Reads of links that come while others are under way go out together, so that the database is asked once for many. A
// read never joins a statement that was handed on: its answer may have been true before the read was wanted. What one
// statement was refused because of one of its rows is asked in halves, until that row stands alone.
import { DeadlineExceeded, PoolOverloaded } from "@linkfence/db";
import type { LinkRow } from "../domain/entry.ts";

/** A row, null for none, or what is wrong with that one alone. */
type Answer = LinkRow | null | Error;

export type ReadBatchesOptions = {
  /**
   * Asks for all of these codes in one statement, which is sent after the call. Resolves with one answer each, in their order.
   * @param leftMs deadline, in ms: until then somebody waits for it
   */
  readMany: (codes: readonly string[], leftMs: number) => Promise<readonly Answer[]>;
  /** Says whether an error of a statement may be that of one of its rows, so that the others would be answered without it. */
  mayBeOfOneRow: (error: unknown) => boolean;
  /** A read that was not answered so long after it was wanted is given up, in ms. */
  timeoutMs: number;
  /** Milliseconds of a clock that never goes back. */
  now: () => number;
  /** Sets a timer, which is not taken back. */
  after: (ms: number, act: () => void) => void;
  /** Calls back at the end of this turn of the event loop. */
  soon?: (act: () => void) => void;
  /** Bounds; the product's own are below. */
  maxStatements?: number;
  maxCodes?: number;
  maxWaiting?: number;
};

/**
 * Two, so that the server works at one while this process reads the answer of the other, and one that hangs holds up half
 * of those who come. More of them are smaller, and cost more for the same codes.
 */
const MAX_STATEMENTS = 2;
/** The answer of so many, with targets of 8 KB, is 2 MB; a larger batch saves next to nothing, and is a longer turn. */
const MAX_CODES = 256;
/** As many as could wait for the pool when each had a statement of its own. */
const MAX_WAITING = 1000;

/** `settled`: answered, or given up. */
type Wanted = {
  code: string;
  endsAt: number;
  settled: boolean;
  resolve: (row: LinkRow | null) => void;
  reject: (error: unknown) => void;
};

export type ReadBatches = ReturnType<typeof createReadBatches>;

/** Creates them. */
export function createReadBatches(options: ReadBatchesOptions) {
  const { readMany, mayBeOfOneRow, timeoutMs, now, after } = options;
  const {
    soon = setImmediate,
    maxStatements = MAX_STATEMENTS,
    maxCodes = MAX_CODES,
    maxWaiting = MAX_WAITING,
  } = options;
  const counts = { statements: 0, split: 0, refused: 0, givenUp: 0 };
  /** Not handed on yet, in the order of coming; of `behind` only what a statement has room for beside the others. */
  let waiting: Wanted[] = [];
  let behind: Wanted[] = [];
  const sent = new Set<readonly Wanted[]>();
  let isTimed = false;
  let unanswered = 0;
  let isScheduled = false;

  /** Those that come in one turn go together. */
  function schedule(): void {
    if (isScheduled || sent.size >= maxStatements || waiting.length + behind.length === 0) return;
    isScheduled = true;
    soon(() => {
      isScheduled = false;
      send();
    });
  }

  function send(): void {
    while (sent.size < maxStatements && waiting.length + behind.length > 0) {
      const batch = waiting.length > maxCodes ? waiting.splice(0, maxCodes) : waiting;
      if (batch === waiting) waiting = [];
      if (behind.length > 0) batch.push(...behind.splice(0, maxCodes - batch.length));
      void carryOut(batch);
    }
  }

  async function carryOut(batch: readonly Wanted[]): Promise<void> {
    sent.add(batch);
    await ask(batch);
    sent.delete(batch);
    schedule();
  }

  /** Never rejects. Halves go one after the other, as one statement did. */
  async function ask(batch: readonly Wanted[]): Promise<void> {
    const wanted = batch.filter(({ settled }) => !settled);
    const last = wanted.at(-1);
    if (!last) return;
    counts.statements += 1;
    try {
      const codes = wanted.map(({ code }) => code);
      const answers = await readMany(codes, Math.max(1, last.endsAt - now()));
      for (let place = 0; place < wanted.length; place += 1) give(wanted[place] as Wanted, answers[place]);
    } catch (error) {
      if (wanted.length === 1 || !mayBeOfOneRow(error)) {
        for (const one of wanted) settle(one, () => one.reject(error));
        return;
      }
      counts.split += 1;
      const half = wanted.length >> 1;
      await ask(wanted.slice(0, half));
      await ask(wanted.slice(half));
    }
  }

  function give(one: Wanted, answer: Answer | undefined): void {
    if (answer instanceof Error) settle(one, () => one.reject(answer));
    else if (answer === undefined)
      settle(one, () => one.reject(new Error("a statement answered less than it was asked")));
    else settle(one, () => one.resolve(answer));
  }

  function settle(one: Wanted, tell: () => void): void {
    if (one.settled) return;
    one.settled = true;
    unanswered -= 1;
    tell();
  }

  /** All have the same time, so that one timer, for whoever came first, serves all of them. */
  function watch(first: Wanted): void {
    if (isTimed) return;
    isTimed = true;
    after(Math.max(1, first.endsAt - now()), () => {
      isTimed = false;
      const next = giveUpLate();
      if (next) watch(next);
    });
  }

  /** Returns the one whose end is next. */
  function giveUpLate(): Wanted | undefined {
    const at = now();
    let next: Wanted | undefined;
    for (const one of [...sent, waiting, behind].flat()) {
      if (one.settled) continue;
      if (one.endsAt > at) {
        if (next === undefined || one.endsAt < next.endsAt) next = one;
        continue;
      }
      counts.givenUp += 1;
      settle(one, () => one.reject(new DeadlineExceeded(timeoutMs)));
    }
    waiting = waiting.filter(({ settled }) => !settled);
    behind = behind.filter(({ settled }) => !settled);
    return next;
  }

  function want(code: string, isBehind: boolean): Promise<LinkRow | null> {
    if (unanswered >= maxWaiting) {
      counts.refused += 1;
      return Promise.reject(new PoolOverloaded(maxWaiting));
    }
    unanswered += 1;
    return new Promise((resolve, reject) => {
      const one = { code, endsAt: now() + timeoutMs, settled: false, resolve, reject };
      (isBehind ? behind : waiting).push(one);
      watch(one);
      schedule();
    });
  }

  return {
    /**
     * Reads one link: by a statement that is sent after this call. Rejects with what the statement rejects with, with
     * `DeadlineExceeded`, or with `PoolOverloaded` when too many wait already.
     */
    read: (code: string) => want(code, false),
    /** The same, but in the room that statements have beside the links that `read` asks for. */
    readBehind: (code: string) => want(code, true),
    /** Somebody waits for it now: what was asked for by `readBehind`, and was not sent yet, goes with the others. */
    hasten(code: string): void {
      const place = behind.findIndex((one) => one.code === code);
      if (place !== -1) waiting.push(...behind.splice(place, 1));
    },
    stats: () => ({ ...counts, unanswered, waiting: waiting.length, behind: behind.length, sent: sent.size }),
  };
}
