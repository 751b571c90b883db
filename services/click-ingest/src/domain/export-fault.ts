// What an attempt can fail of, and whether another one is worth it.
import type { ExportFault } from "@linkfence/contracts";

/** A first attempt and two more: what has not passed by then is not passing. */
export const EXPORT_ATTEMPTS_MAX = 3;

/** A server that restarts, or a failover, is over within the first or the second pause. */
const FIRST_PAUSE_MS = 2000;
/** Long enough for a disk to be tidied up, and short enough for somebody who waits. */
const LONGEST_PAUSE_MS = 60_000;

/** Thrown where an attempt has to end. `detail` is shown to the job's owner: it names no path and no host. */
export class ExportFailure extends Error {
  readonly fault: ExportFault;

  constructor(fault: ExportFault, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = "ExportFailure";
    this.fault = fault;
  }
}

/** Faults of the order itself, or of this program: the same attempt would end the same way. */
const FINAL: ReadonlySet<ExportFault> = new Set(["too-many-rows", "internal"]);

/** Says whether an attempt that ended so may be repeated. */
export function isPassing(fault: ExportFault): boolean {
  return !FINAL.has(fault);
}

/**
 * Tells how long to wait before the next attempt: four times as long after each failure, capped, and the upper half random.
 * @param attempts attempts so far, at least 1
 * @param random a number in [0, 1)
 * @returns milliseconds
 */
export function pauseMs(attempts: number, random: number): number {
  const ceiling = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 4 ** (attempts - 1));
  return Math.round(ceiling * (0.5 + random / 2));
}

/** Codes of the system that say that there is no room: disk, quota, and the largest file that may be. */
const NO_ROOM = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** What a failed attempt to write a file is told as. */
export function storageFault(code: string): ExportFailure {
  return NO_ROOM.has(code)
    ? new ExportFailure("storage-full", "there is no room for the file")
    : new ExportFailure("storage", "the file could not be written");
}
