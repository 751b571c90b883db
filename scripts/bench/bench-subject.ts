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
  run(bench: Bench): Promise<void>;
};

export type Bench = {
  server: OwnServer;
  size: Size;
  /** What a benchmark of clicks sends, or is about. */
  clicks: { count: number; spread: Spread };
  results: Results;
  /** Tells how far it is, for whoever waits. */
  tell: (text: string) => void;
};
