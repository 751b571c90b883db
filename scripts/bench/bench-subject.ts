import type { Spread } from "./click-load.ts";
import type { OwnServer } from "./own-server.ts";
import type { Results } from "./results.ts";
import type { Size } from "./seed.ts";

/** One command of `pnpm bench`. */
export type Subject = {
  /** What it measures, as a sentence without a full stop. */
  shows: string;
  /** Links that the database holds where nothing else is asked for. */
  links: number;
  /** Rounds where nothing else is asked for, if not five. */
  rounds?: number;
  /** What `--parts` may name. */
  parts?: readonly string[];
  run(bench: Bench): Promise<void>;
};

export type Bench = {
  server: OwnServer;
  size: Size;
  /** What a benchmark of clicks sends, or is about. */
  clicks: { count: number; spread: Spread };
  /**
   * Of benchmarks that take turns: measured rounds, seconds that each server is asked in a round, how often it is asked anew
   * where others used the machine, and minutes at full load.
   */
  pace: { rounds: number; seconds: number; tries: number; minutes: number };
  /** The named parts of a subject alone; all of them where none is named. */
  parts: readonly string[];
  /** Only a collapse is to be told: bounds are half as strict, and what could not be measured is no failure. */
  quick: boolean;
  results: Results;
  /** Tells how far it is, for whoever waits. */
  tell: (text: string) => void;
};
