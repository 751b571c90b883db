// Follows the change log for one redirect process, through any failure, and says how current its cache is.
//
// The moment that counts is taken before a read is sent: everything committed before it is in that read. It is reported
// only after all of the read was applied. Starting anew flushes as well: what was cached before the new position was
// read may have missed the changes between the two.
import { type Change, type FlushCause, judgePage, type Position, readFrom } from "./cursor.ts";
import type { Renewal, SyncAnswer, SyncRequest } from "./read-changes.ts";
import { createPauses, type StartTimer } from "./timer.ts";

/** Two reads started by notifications lie at least this far apart: a flood of them costs 500 reads a second at most. */
const MIN_GAP_MS = 2;
/** Pause after a failed read: as short as a fast poll, and bounded where the poll is slow or off. */
const RETRY_MS = { shortest: 50, longest: 1000 };

/** Milliseconds of a clock that never steps, and of the wall clock; read together, before a read is sent. */
export type Moment = { mono: number; wall: number };
export type RestartCause = FlushCause | "started" | "registration-lost";

export type FollowOptions = {
  /** Milliseconds between polls; 0 for none, then only notifications and the renewals lead to a read. */
  pollIntervalMs: number;
  ttlMs: number;
  now: () => Moment;
  random: () => number;
  /** For the pauses between reads; the process's own timers unless it is given. */
  after?: StartTimer;
  newInstanceId: () => string;
  /** Enters this process into the registry under an id, committed on return. May be called again with the same id. */
  register: (id: string) => Promise<void>;
  sync: (request: SyncRequest) => Promise<SyncAnswer>;
  /** Both run in one synchronous turn, before anything else can be answered. */
  apply: (changes: readonly Change[]) => void;
  flush: (cause: RestartCause) => void;
  /** Everything committed before `moment` has been applied. */
  onSynced: (moment: Moment) => void;
  /** Reading fails; told once for each run of failures. */
  onTrouble: (error: unknown) => void;
  /** The first read that succeeded after trouble. */
  onRecovered: () => void;
};

export type Follower = ReturnType<typeof createFollower>;

/** Starts following at once, in the background, until `stop`. */
export function createFollower(options: FollowOptions) {
  const { ttlMs, now, random } = options;
  const counts = { syncs: 0, failures: 0, renewals: 0, applied: 0 };
  const flushes: Partial<Record<RestartCause, number>> = {};
  let instance = options.newInstanceId();
  let registered = false;
  let position: Position | null = null;
  let acknowledgedSeq = 0;
  /** Renewals that were sent, whatever became of them. */
  let renewalsSent = 0;
  let renewedAt: Moment | null = null;
  let head = 0;
  let failing = false;
  let stopped = false;
  let woken = false;
  let readAtMono = Number.NEGATIVE_INFINITY;
  const { pause, rouse } = createPauses(options.after);
  const finished = run();

  /** Registers where needed, reads until nothing is left, and acknowledges what was applied. */
  async function catchUp(): Promise<void> {
    for (let complete = false; !complete || renewalAt(now()) !== null; ) {
      if (stopped) return;
      if (!registered) await options.register(instance);
      registered = true;
      const sentAt = now();
      readAtMono = sentAt.mono;
      const due = renewalAt(sentAt);
      const renewal = due && { ...due, count: ++renewalsSent };
      const answer = await options.sync({ instance, from: readFrom(position), renewal });
      counts.syncs += 1;
      complete = accept(answer, sentAt, renewal);
    }
  }

  /** Takes in one answer, in one synchronous turn. Returns whether everything committed before it is applied. */
  function accept(answer: SyncAnswer, sentAt: Moment, renewal: Renewal | null): boolean {
    if (!answer.registered) {
      instance = options.newInstanceId();
      registered = false;
      return restart("registration-lost");
    }
    const starting = position === null;
    const verdict = judgePage(position, answer.page);
    if (verdict.kind === "flush") return restart(verdict.cause);
    if (starting) flush("started");
    options.apply(verdict.fresh);
    position = verdict.position;
    head = answer.page.head;
    counts.applied += verdict.fresh.length;
    if (renewal) renewed(renewal, sentAt);
    if (verdict.complete) options.onSynced(sentAt);
    return verdict.complete;
  }

  /**
   * A row is judged by how long its count stood still, and memory is good for a TTL from a read. So reads go on without a
   * renewal for a quarter of the TTL at the most, and one that begins anew is one itself. An acknowledgement does not wait
   * for the server's disk, and its count may be lost with it: nothing is built on that.
   */
  function renewed({ lasting, appliedSeq: seq }: Renewal, sentAt: Moment): void {
    if (lasting) renewedAt = sentAt;
    acknowledgedSeq = seq;
    counts.renewals += 1;
  }

  function restart(cause: RestartCause): false {
    flush(cause);
    position = null;
    renewedAt = null;
    return false;
  }

  function flush(cause: RestartCause): void {
    flushes[cause] = (flushes[cause] ?? 0) + 1;
    options.flush(cause);
  }

  function appliedSeq(): number {
    return position?.last?.seq ?? 0;
  }

  /** What a read that is sent now says of this process. One that is due lasts, and leaves what is new to the one after it. */
  function renewalAt(moment: Moment): Omit<Renewal, "count"> | null {
    const epoch = position?.epoch ?? "";
    if (isRenewalDue(moment)) return { lasting: true, appliedSeq: Math.min(acknowledgedSeq, appliedSeq()), epoch };
    return acknowledgedSeq < appliedSeq() ? { lasting: false, appliedSeq: appliedSeq(), epoch } : null;
  }

  /** Both clocks are asked, as for the memory: in a machine that slept, the one that never steps stood still. */
  function isRenewalDue({ mono, wall }: Moment): boolean {
    return renewedAt === null || Math.max(mono - renewedAt.mono, wall - renewedAt.wall) >= ttlMs / 4;
  }

  async function run(): Promise<void> {
    while (!stopped) {
      woken = false;
      try {
        await catchUp();
        if (failing) options.onRecovered();
        failing = false;
        await pauseUntilWoken(pollMs());
      } catch (error) {
        counts.failures += 1;
        if (!failing) options.onTrouble(error);
        failing = true;
        const ms = Math.min(RETRY_MS.longest, Math.max(RETRY_MS.shortest, pollMs()));
        await interruptiblePause(ms * (1 - random() / 2));
      }
    }
  }

  function pollMs(): number {
    return options.pollIntervalMs > 0 ? Math.min(options.pollIntervalMs, ttlMs / 4) : ttlMs / 4;
  }

  /** Waits for the next poll, or for a notification, which may have come already. */
  async function pauseUntilWoken(ms: number): Promise<void> {
    if (!woken) await interruptiblePause(ms, () => woken);
    const gap = readAtMono + MIN_GAP_MS - now().mono;
    if (woken && gap > 0) await interruptiblePause(gap);
  }

  /** Ends early on `stop`, and where `early` says so when roused. A failing read is not to be hastened. */
  function interruptiblePause(ms: number, early = () => false): Promise<void> {
    return stopped ? Promise.resolve() : pause(ms, () => stopped || early());
  }

  return {
    /** Something may have changed: read soon. Any number of calls before the next read count as one. */
    wake(): void {
      woken = true;
      rouse();
    },
    /** Ends after the read under way; rejects never. */
    async stop(): Promise<void> {
      stopped = true;
      rouse();
      await finished;
    },
    /** The id under which this process is registered, or may be: an answer may have been lost. */
    instance: () => instance,
    stats: () => ({ ...counts, appliedSeq: appliedSeq(), head, lag: Math.max(0, head - appliedSeq()) }),
    flushes: () => ({ ...flushes }),
  };
}
