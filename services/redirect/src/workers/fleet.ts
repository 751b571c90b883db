// The workers of a primary: each number has one that serves. One that ends is replaced; at a reload its successor is ready
// before it is told to end; and each place of the spool has one process at the most, or waits for one.
import { ConfigError, type Logger } from "@linkfence/service-shell";
import type { FromWorker, ToWorker } from "./messages.ts";
import { addEnd, type Record as EndRecord, NO_ENDS, pauseBefore } from "./restart-policy.ts";

/** A start with a database that answers takes a second or two; a busy machine gets many times that. */
const READY_MS = 30_000;
/** A start reads what an earlier process left in the spool, which may be gigabytes; one that takes longer hangs. */
const LISTEN_MS = 600_000;
/** Nobody can wait for longer with a timer; each worker that hangs is killed, and its number given up, long before. */
const START_MS = 2 ** 31 - 1;
/** A worker ends itself 20 s after it was told to; this is for one that cannot. */
const END_MS = 22_000;
/** sysexits.h: EX_CONFIG. Another try is useless without a change. */
const EXIT_BAD_CONFIG = 78;

export type Ended = { code: number | null; signal: string | null };
/** A process that was forked. */
export type Forked = {
  pid: number;
  exited: Promise<Ended>;
  send(message: ToWorker): void;
  onMessage(listener: (message: FromWorker) => void): void;
  kill(): void;
};
export type Fork = (who: { number: number; place: number }) => Forked;

export type Phase = "starting" | "listening" | "ready" | "stopping";
export type WorkerProcess = {
  number: number;
  place: number;
  process: Forked;
  phase: Phase;
  startedAt: number;
  wasReady: boolean;
  /** Places whose clicks it sends beside its own. */
  inherits: Set<number>;
};
type Slot = { number: number; current: WorkerProcess | null; successor: WorkerProcess | null; ends: EndRecord };

export type FleetOptions = {
  size: number;
  fork: Fork;
  /** Places of the spool in which clicks lie. May reject. */
  leftPlaces: () => Promise<number[]>;
  now: () => number;
  logger: Logger;
  /** Told of each message that is not the fleet's own affair, and of each end, before anything else is done about it. */
  onMessage: (worker: WorkerProcess, message: FromWorker) => void;
  onEnded: (worker: WorkerProcess) => void;
  /** Told once, when there is no use in going on. */
  onGivenUp: (error: Error) => void;
};

export type Fleet = ReturnType<typeof createFleet>;

/** Creates it; nothing is started before `start`. */
export function createFleet(options: FleetOptions) {
  const { size, fork, leftPlaces, now, logger, onMessage, onEnded, onGivenUp } = options;
  const slots: Slot[] = Array.from({ length: size }, (_, index) => ({
    ...{ number: index + 1, current: null, successor: null, ends: NO_ENDS },
  }));
  const workers = new Set<WorkerProcess>();
  const counts = { starts: 0, unexpectedEnds: 0, killed: 0, reloads: { done: 0, failed: 0 } };
  const timers = new Set<NodeJS.Timeout>();
  const watchers = new Set<() => void>();
  let stopping = false;
  let wereAllReady = false;
  let reloading: Promise<void> | null = null;
  let isReloadWanted = false;

  function launch(slot: Slot): WorkerProcess {
    const taken = new Set([...workers].flatMap(({ place, inherits }) => [place, ...inherits]));
    let place = 1;
    while (taken.has(place)) place += 1;
    const forked = fork({ number: slot.number, place });
    const worker: WorkerProcess = {
      ...{ number: slot.number, place, process: forked, phase: "starting", startedAt: now(), wasReady: false },
      inherits: new Set(),
    };
    workers.add(worker);
    counts.starts += 1;
    forked.onMessage((message) => hear(worker, message));
    const hangs = setTimeout(() => {
      if (worker.phase !== "starting") return;
      logger.error("a worker does not begin to listen and is killed", { worker: slot.number, pid: forked.pid });
      counts.killed += 1;
      forked.kill();
    }, LISTEN_MS);
    void forked.exited.then((end) => {
      clearTimeout(hangs);
      noteEnd(slot, worker, end);
    });
    return worker;
  }

  function hear(worker: WorkerProcess, message: FromWorker): void {
    if (message.kind === "listening" && worker.phase === "starting") worker.phase = "listening";
    else if (message.kind === "inherited") worker.inherits.delete(message.place);
    else if (message.kind === "ready") {
      worker.wasReady = true;
      if (worker.phase !== "stopping") worker.phase = "ready";
      wereAllReady ||= slots.every(({ current }) => current?.wasReady);
      logger.info("a worker is ready", { worker: worker.number, pid: worker.process.pid });
      void shareOut();
    }
    onMessage(worker, message);
    changed();
  }

  function noteEnd(slot: Slot, worker: WorkerProcess, { code, signal }: Ended): void {
    workers.delete(worker);
    onEnded(worker);
    const wasTold = worker.phase === "stopping";
    worker.phase = "stopping";
    changed();
    if (slot.current === worker) slot.current = null;
    if (stopping) return;
    if (!wasTold) {
      counts.unexpectedEnds += 1;
      const { number, process } = worker;
      logger.warn("a worker ended by itself", { worker: number, pid: process.pid, code, signal });
      slot.ends = addEnd(slot.ends, { wasReady: worker.wasReady, livedMs: now() - worker.startedAt });
      // Before all were ready once, what one of them refuses is for whoever starts this to know.
      if (code === EXIT_BAD_CONFIG && !wereAllReady) giveUp(refusedBy(number));
    }
    fill(slot);
    void shareOut();
  }

  /** Has the number served again, after the pause that its last ends ask for. */
  function fill(slot: Slot): void {
    if (stopping || slot.current !== null || slot.successor !== null) return;
    const othersServe = [...workers].some(({ phase }) => phase === "ready");
    const pauseMs = pauseBefore(slot.ends, othersServe);
    if (pauseMs === null) {
      giveUp(new Error(`worker ${slot.number} ended ${slot.ends.unready} times before it was ready: giving up`));
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (!stopping && slot.current === null && slot.successor === null) slot.current = launch(slot);
    }, pauseMs);
    timers.add(timer);
  }

  function giveUp(error: Error): void {
    if (stopping) return;
    stopping = true;
    onGivenUp(error);
  }

  function changed(): void {
    for (const look of [...watchers]) look();
  }

  /** Resolves with whether `holds` came to hold within the time; it is looked at whenever anything has happened. */
  function comes(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (outcome: boolean) => {
        clearTimeout(timer);
        watchers.delete(look);
        resolve(outcome);
      };
      const look = () => {
        if (holds()) finish(true);
      };
      const timer = setTimeout(() => finish(false), timeoutMs);
      watchers.add(look);
      look();
    });
  }

  /** Places that nobody is to start on are given to workers that serve, to the one with the fewest. */
  async function shareOut(): Promise<void> {
    const isWhole = () => !stopping && reloading === null && slots.every(({ current }) => current?.phase === "ready");
    if (!isWhole()) return;
    const left = await leftPlaces().catch((error: unknown) => {
      logger.warn("which clicks earlier processes left is unknown", { error });
      return [];
    });
    if (!isWhole()) return;
    for (const place of left) {
      const heirs = [...workers].filter(({ phase }) => phase === "ready");
      if (heirs.some((worker) => worker.place === place || worker.inherits.has(place))) continue;
      if ([...workers].some((worker) => worker.place === place)) continue;
      const [heir] = heirs.sort((a, b) => a.inherits.size - b.inherits.size);
      if (!heir) return;
      heir.inherits.add(place);
      heir.process.send({ kind: "inherit", place });
    }
  }

  /** Tells a worker to end, and ends it when it does not. */
  async function end(worker: WorkerProcess, how: "stop" | "retire"): Promise<void> {
    worker.phase = "stopping";
    worker.process.send({ kind: how });
    if (await comes(() => !workers.has(worker), END_MS)) return;
    counts.killed += 1;
    logger.error("a worker did not end and is killed", { worker: worker.number, pid: worker.process.pid });
    worker.process.kill();
    await worker.process.exited;
  }

  /** Returns whether the number has a new worker. */
  async function replace(slot: Slot): Promise<boolean> {
    const former = slot.current;
    const successor = launch(slot);
    slot.successor = successor;
    await comes(() => stopping || successor.phase === "ready" || !workers.has(successor), READY_MS);
    slot.successor = null;
    if (stopping) return false;
    if (successor.phase === "ready") {
      slot.current = successor;
      slot.ends = NO_ENDS;
      if (former && workers.has(former)) await end(former, "retire");
      return true;
    }
    logger.error("a new worker did not become ready: the reload ends, and those that are there go on", {
      worker: slot.number,
      pid: successor.process.pid,
    });
    if (workers.has(successor)) await end(successor, "stop");
    fill(slot);
    return false;
  }

  async function replaceAll(): Promise<void> {
    for (const slot of slots) {
      if (stopping) return;
      if (!(await replace(slot))) {
        if (!stopping) counts.reloads.failed += 1;
        return;
      }
    }
    counts.reloads.done += 1;
    logger.info("every worker was replaced", { workers: size });
  }

  return {
    /** Starts all of them. Resolves when each listens, or the fleet has given up. */
    async start(): Promise<void> {
      for (const slot of slots) slot.current = launch(slot);
      const listens = ({ current }: Slot) => current !== null && current.phase !== "starting";
      await comes(() => stopping || slots.every(listens), START_MS);
    },
    /** Replaces each of them, one after the other. One that is asked for meanwhile comes afterwards, once. Never rejects. */
    async reload(): Promise<void> {
      isReloadWanted = true;
      reloading ??= (async () => {
        while (isReloadWanted && !stopping) {
          isReloadWanted = false;
          await replaceAll();
        }
        reloading = null;
        await shareOut();
      })();
      await reloading;
    },
    /** Ends all of them, at the same time. */
    async stop(): Promise<void> {
      stopping = true;
      for (const timer of timers) clearTimeout(timer);
      changed();
      const retiring = [...workers].filter(({ phase }) => phase === "stopping");
      await Promise.all([
        ...retiring.map(({ process }) => process.exited),
        ...[...workers].filter(({ phase }) => phase !== "stopping").map((worker) => end(worker, "stop")),
      ]);
    },
    workers: (): readonly WorkerProcess[] => [...workers],
    /** The name under which readings tell of a worker: its number, and what it is beside the one that serves. */
    nameOf(worker: WorkerProcess): string {
      const slot = slots[worker.number - 1];
      if (slot?.current === worker) return String(worker.number);
      return `${worker.number}-${slot?.successor === worker ? "new" : "old"}`;
    },
    /** Whether each number has had a worker that was ready. */
    wereAllReady: () => wereAllReady,
    counts: () => counts,
  };
}

function refusedBy(number: number): ConfigError {
  return new ConfigError([`REDIRECT_WORKERS: worker ${number} cannot start: what it wrote before this says why`]);
}
