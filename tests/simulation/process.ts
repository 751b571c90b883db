// A process on a machine: its clocks, its timers, and what keeps it from running.
import type { Dice } from "./dice.ts";
import type { Kernel } from "./kernel.ts";

/** Wall clocks count from here, so that no step takes them below 0. */
const WALL_START = 1e9;
/** What waited for a process that was stopped is taken up within this time, in any order: a turn of its event loop or two. */
const BACKLOG_MS = 1;

export type Process = ReturnType<typeof createProcess>;

/** @param rate ms that its clocks advance in a true one */
export function createProcess(kernel: Kernel, dice: Dice, rate: number) {
  const bootedAt = dice.between(0, 1e6);
  let wallStep = 0;
  let asleepMs = 0;
  let alive = true;
  let stoppedUntil = 0;
  let backlog: (() => void)[] = [];

  function deliver(act: () => void): void {
    if (!alive) return;
    if (kernel.now() < stoppedUntil) {
      backlog.push(act);
      return;
    }
    kernel.enter();
    act();
  }

  function stop(ms: number): void {
    const until = kernel.now() + ms;
    if (until <= stoppedUntil) return;
    stoppedUntil = until;
    kernel.at(until, () => {
      if (kernel.now() < stoppedUntil) return;
      const waiting = backlog;
      backlog = [];
      for (const act of waiting) kernel.at(until + dice.between(0, BACKLOG_MS), () => deliver(act));
    });
  }

  return {
    rate,
    mono: () => bootedAt + kernel.now() * rate - asleepMs,
    wall: () => WALL_START + kernel.now() * rate + wallStep,
    isAlive: () => alive,
    /** Has the process do something, as soon as it runs. */
    deliver,
    /** A timer, by the process's clock. */
    after(ms: number, act: () => void): () => void {
      let due = true;
      kernel.at(kernel.now() + ms / rate, () => {
        if (due)
          deliver(() => {
            if (due) act();
          });
      });
      return () => {
        due = false;
      };
    },
    /** As SIGSTOP, and SIGCONT after so many true ms. */
    stop,
    /** As a laptop's lid: the clock that never steps stands still, too. */
    sleep(ms: number): void {
      stop(ms);
      asleepMs += ms * rate;
    },
    stepWall(ms: number): void {
      wallStep += ms;
    },
    kill(): void {
      alive = false;
    },
  };
}
