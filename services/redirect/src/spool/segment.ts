// One file of a spool, and its name.
import type { SpoolFile } from "./file-system.ts";

export type Segment = {
  readonly number: number;
  readonly path: string;
  /** Bytes that are known to be in it. */
  size: number;
  /** Clicks in it that have not come to their end. */
  unsettled: number;
  /** Those that have. */
  settled: number;
  /** Nothing is added to it any more. */
  sealed: boolean;
  abandoned: boolean;
  /** No name leads to it any more; it is read by its descriptor, and ends with this process. */
  nameless: boolean;
  removed: boolean;
  writing: boolean;
  /** Written to since the last flush. */
  dirty: boolean;
  /** Its name is not known to be on the disk. */
  fresh: boolean;
  file: SpoolFile | null;
};

/** A part of a segment, from `from` to before `to`. */
export type Place = { segment: Segment; from: number; to: number };
/** `refused`: nothing was written. `uncertain`: nobody knows how much was. */
export type Stored = Place | "refused" | "uncertain";
export type AbandonCause = "write" | "sync" | "name";

/** A segment that an earlier process left: clicks that have not come to their end, and those that have. */
export type Adopted = { number: number; size: number; clicks: number; settled: number };

/** What is so of a segment that nothing has happened to yet. */
export const FRESH = {
  ...{ unsettled: 0, settled: 0, sealed: false, abandoned: false, nameless: false, removed: false, writing: false },
  ...{ dirty: false, fresh: false, file: null },
};

export const TROUBLES: Record<AbandonCause, string> = {
  write: "a segment was abandoned: write failed",
  sync: "a segment was abandoned: sync failed",
  name: "a segment was abandoned: its file is no longer where it was, and a kill would take the clicks in it",
};

export const segmentName = (number: number) => `clicks-${String(number).padStart(12, "0")}.spool`;
/** NaN for another name. Longer numbers than we write are taken, too, as the next one goes on from the greatest there is. */
export const segmentNumber = (name: string) => Number(/^clicks-(\d{12,15})\.spool$/.exec(name)?.[1] ?? Number.NaN);
