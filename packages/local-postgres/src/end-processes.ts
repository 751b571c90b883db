import { setTimeout as pause } from "node:timers/promises";
import { errorCode, LocalPostgresError } from "./local-postgres-error.ts";

/** A signal and how long it may take to work before the next, harsher one. */
export type SignalStep = { signal: NodeJS.Signals; waitMs: number };

/**
 * The three ways to stop a PostgreSQL server (manual, 19.5): fast (rolls back, writes everything to disk), immediate
 * (the next start replays the log), and the kernel's.
 * @param fastMs how long the clean one may take
 */
export function shutdownSteps(fastMs: number): SignalStep[] {
  return [
    { signal: "SIGINT", waitMs: fastMs },
    // The server itself kills workers that do not leave within 5 s (SIGKILL_CHILDREN_AFTER_SECS in postmaster.c).
    { signal: "SIGQUIT", waitMs: 7_000 },
    { signal: "SIGKILL", waitMs: 5_000 }, // only a disk that does not answer can be in the way
  ];
}

/**
 * Ends processes that are not our children.
 * @param isTheSame asked before each signal: does the number still belong to the process that is meant?
 * @throws LocalPostgresError `data-dir-in-use` when one could not be ended
 */
export async function endProcesses(
  pids: readonly number[],
  steps: readonly SignalStep[],
  isTheSame: (pid: number) => Promise<boolean>,
): Promise<void> {
  let left = await keep(pids, isTheSame);
  for (const { signal, waitMs } of steps) {
    for (const pid of left) {
      signalProcess(pid, signal);
    }
    for (const end = performance.now() + waitMs; left.length > 0 && performance.now() < end; ) {
      await pause(20); // somebody else's child: there is no event to wait for
      left = await keep(left, isTheSame);
    }
  }
  if (left.length > 0) {
    throw cannotEnd(left);
  }
}

async function keep(pids: readonly number[], test: (pid: number) => Promise<boolean>): Promise<number[]> {
  const verdicts = await Promise.all(pids.map(test));
  return pids.filter((_, index) => verdicts[index]);
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) === "EPERM") {
      throw cannotEnd([pid], error);
    }
  }
}

/** @param pids processes that hold the data directory and withstood every signal, or may not be signalled */
export function cannotEnd(pids: readonly number[], cause?: unknown): LocalPostgresError {
  return new LocalPostgresError(
    "data-dir-in-use",
    `This data directory is in use by process ${pids.join(", ")}, which could not be stopped. Stop it (as its user or ` +
      "as root), or set LINKFENCE_DATA_DIR to another directory.",
    { cause },
  );
}
