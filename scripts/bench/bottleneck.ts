// Whether a measurement says something about the server. Judged by who used the processors, and never by what came out.

/** Parts of one core, 0 to 1, while the load ran. */
export type Shares = {
  /** The server that is measured. */
  server: number;
  /** The load's core, whoever used it. */
  loadCore: number;
  /** On both cores, by processes that are no part of the benchmark. */
  foreign: number;
  /** Taken by the machine below this one, from both cores. */
  steal: number;
};

/** A server that is the limit has its core nearly to itself; the kernel's own work for the network is not counted as its. */
const SERVER_BUSY = 0.88;
/** Clock ticks leave a core that never rests a little below one. */
const LOAD_BUSY = 0.95;
/** Of the runs that performance.md keeps, none had more. */
const FOREIGN_MAX = 0.12;
const STEAL_MAX = 0.05;

export const SERVER_WAS = "the server was the limit";
export type Verdict = typeof SERVER_WAS | "the load was the bottleneck" | "others used the machine" | "nobody was";

/** What limited a closed loop. A machine that others use is none to measure on, whatever else was. */
export function judgeShares({ server, loadCore, foreign, steal }: Shares): Verdict {
  if (foreign > FOREIGN_MAX || steal > STEAL_MAX) return "others used the machine";
  if (server >= SERVER_BUSY) return SERVER_WAS;
  if (loadCore >= LOAD_BUSY) return "the load was the bottleneck";
  return "nobody was";
}
