// One watch over the registry for the whole process: it keeps the registry, and tells those who wait for a revocation
// when it is in force everywhere. Acknowledgements wake it; nothing depends on their arrival, since it looks again anyway.

import { createPauses, type StartTimer, startTimer } from "@linkfence/link-feed";
import type { Counts } from "../counts.ts";
import { judgeConfirmation, type Verdict, type Wanted } from "../domain/confirmation.ts";
import type { Sight } from "../domain/registry.ts";
import { committedBy, type Memory, NOTHING_SEEN, watch } from "../domain/upkeep.ts";
import type { RegistryStore } from "../store/registry.ts";

export type RegistryWatchOptions = {
  registry: Pick<RegistryStore, "look" | "settle" | "remove">;
  /** ms of a clock that never steps. */
  now: () => number;
  /** For the pauses and the deadlines; the process's own timers unless it is given. */
  after?: StartTimer;
  /** Pause between two looks in ms: while somebody waits, and while nobody does. */
  everyMs: { awaited: number; idle: number };
  /** The greatest TTL that an instance may have that no sight shows, in ms. */
  unseenTtlMs: number;
  counts: Counts["effective"];
  /** Told of instances that were removed, and of a history that was settled. */
  onUpkeep: (event: { removed: readonly string[] } | { settled: string }) => void;
  /** Told the cause when looking begins to fail, and undefined when it works again. */
  onTrouble: (cause: unknown) => void;
};

type Waiter = {
  wanted: Wanted;
  /** The greatest TTL of the rows that were seen since the commit. */
  longestTtlMs: number;
  verdict: Verdict;
  resolve: (verdict: Verdict) => void;
};

export type RegistryWatch = ReturnType<typeof createRegistryWatch>;

/** Starts watching at once, until `stop`. */
export function createRegistryWatch(options: RegistryWatchOptions) {
  const { registry, now, after = startTimer, everyMs, unseenTtlMs, counts, onUpkeep, onTrouble } = options;
  const waiters = new Set<Waiter>();
  let memory: Memory = NOTHING_SEEN;
  let last: Sight | null = null;
  let woken = false;
  /** An acknowledgement came that no look has followed. */
  let heard = false;
  /** Since when somebody has waited, be it in turn, since the last look; in ms of `now`. */
  let awaitedSince: number | null = null;
  let stopped = false;
  let failing = false;
  const { pause, rouse } = createPauses(after);
  const finished = run();

  async function run(): Promise<void> {
    while (!stopped) {
      woken = false;
      heard = false;
      awaitedSince = null;
      try {
        await look();
        if (failing) onTrouble(undefined);
        failing = false;
      } catch (error) {
        counts.failures += 1;
        if (!failing) onTrouble(error);
        failing = true;
      }
      await pauseUntilWoken();
    }
  }

  async function look(): Promise<void> {
    const sight = await registry.look();
    counts.looks += 1;
    last = sight;
    const upkeep = watch(memory, sight, unseenTtlMs);
    memory = upkeep.memory;
    for (const waiter of waiters) judge(waiter);
    if (upkeep.dead.length > 0) await bury(upkeep.dead);
    if (upkeep.settle && (await registry.settle(sight.epoch))) onUpkeep({ settled: sight.epoch });
  }

  async function bury(dead: readonly { id: string; renewals: number }[]): Promise<void> {
    const removed = await registry.remove(dead);
    counts.removed += removed.length;
    if (removed.length === 0) return;
    onUpkeep({ removed });
    woken = true;
  }

  function judge(waiter: Waiter): void {
    const { wanted } = waiter;
    if (last !== null && last.sentAt >= wanted.committedAt)
      waiter.longestTtlMs = Math.max(waiter.longestTtlMs, ...last.instances.map(({ ttlMs }) => ttlMs));
    waiter.verdict = judgeConfirmation(wanted, last, waiter.longestTtlMs, now());
    if (waiter.verdict.kind !== "waiting") waiter.resolve(waiter.verdict);
  }

  /**
   * Whoever begins to wait makes the pause shorter, however short their wait is, and nobody after them makes it longer. A
   * failing look is not hastened by anybody.
   */
  async function pauseUntilWoken(): Promise<void> {
    const startedAt = now();
    if (waiters.size > 0) awaitedSince ??= startedAt;
    while (!stopped && (failing || !woken)) {
      const awaited = waiters.size > 0;
      const endsAt = awaited ? (awaitedSince ?? startedAt) + everyMs.awaited : startedAt + everyMs.idle;
      const ms = endsAt - now();
      if (ms <= 0) return;
      await pause(ms, () => stopped || (!failing && (woken || waiters.size > 0 !== awaited)));
    }
  }

  /** Whether an acknowledgement is bound to come, and a look before it could only find that it has not. */
  function isWorthHearing(): boolean {
    return last?.settled === true && last.instances.length > 0 && last.instances.every((i) => i.followsFeed);
  }

  function wake(): void {
    woken = true;
    rouse();
  }

  return {
    /** Somebody may have acknowledged something: look soon. */
    wake(): void {
      heard = true;
      if (waiters.size > 0) wake();
    },
    /**
     * Waits until a revocation is in force everywhere.
     * @param timeoutMs after which the verdict is given as it stands
     * @param signal gives up at once; what it resolves with then is nobody's concern
     */
    confirm(wanted: Omit<Wanted, "unseenTtlMs">, timeoutMs: number, signal?: AbortSignal): Promise<Verdict> {
      return new Promise((resolve) => {
        const settle = (verdict: Verdict) => {
          cancel();
          waiters.delete(waiter);
          signal?.removeEventListener("abort", giveUp);
          if (verdict.kind === "confirmed") counts.confirmed[verdict.by] += 1;
          else counts.unconfirmed[verdict.kind] += 1;
          resolve(verdict);
        };
        const full = { ...wanted, unseenTtlMs };
        const waiter: Waiter = {
          wanted: full,
          longestTtlMs: 0,
          verdict: judgeConfirmation(full, last, 0, now()),
          resolve: settle,
        };
        const giveUp = () => settle(waiter.verdict);
        const cancel = after(timeoutMs, giveUp);
        signal?.addEventListener("abort", giveUp, { once: true });
        const isFirst = waiters.size === 0;
        waiters.add(waiter);
        if (stopped || signal?.aborted) giveUp();
        else if (waiter.verdict.kind !== "waiting") settle(waiter.verdict);
        else if (heard || !isWorthHearing()) wake();
        else {
          if (isFirst) awaitedSince ??= now();
          rouse();
        }
      });
    },
    /** A time by which a change was committed, in ms of the clock of this watch; null where nothing is known of it. */
    committedBy: (seq: number, epoch: string): number | null =>
      memory.epoch === epoch ? committedBy(memory, seq) : null,
    /** Looks at the registry for itself. Rejects with the database's error. */
    async glance() {
      const sight = await registry.look();
      return { sight, unchangedSince: (id: string) => memory.rows.get(id)?.unchangedSince ?? null };
    },
    stats: () => ({
      waiting: waiters.size,
      instances: last?.instances.length ?? 0,
      settled: last?.settled ?? false,
      lag: Object.fromEntries(
        (last?.instances ?? []).map((i) => [i.address, Math.max(0, (last?.head ?? 0) - i.appliedSeq)]),
      ),
    }),
    /** Has everybody who waits be answered as things stand, and ends after the look under way. */
    async stop(): Promise<void> {
      stopped = true;
      for (const waiter of [...waiters]) waiter.resolve(waiter.verdict);
      rouse();
      await finished;
    },
  };
}
