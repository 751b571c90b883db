import { readFile, writeFile } from "node:fs/promises";
import { readMetric } from "@linkfence/testkit";
import { CONNECTIONS, runLoad } from "./load/load.ts";
import { FEW_HEADERS, type RedirectWorld } from "./redirect-world.ts";
import type { Rounds } from "./rounds.ts";

/** Asking for a hundred thousand codes once takes some ten seconds, all of them misses. */
const SECONDS = 5;
const TRIES = 12;

/**
 * Asks for every code until all of them are in memory, and goes on each time where it has come to.
 * @returns how many answers that took
 */
export async function prime(
  { redirect, target, codes }: Pick<RedirectWorld, "redirect" | "target" | "codes">,
  program: Rounds["program"],
  tell: (text: string) => void,
): Promise<number> {
  const paths = (await readFile(codes.all, "utf8")).trimEnd().split("\n");
  const rest = `${codes.all}-rest`;
  let total = 0;
  for (let [tried, from] = [0, 0]; tried < TRIES; tried += 1) {
    await writeFile(rest, [...paths.slice(from), ...paths.slice(0, from)].map((path) => `${path}\n`).join(""));
    const load = { port: target.port, paths: rest, headers: FEW_HEADERS, rate: null, status: 302, seconds: SECONDS };
    const { answered } = await runLoad(program, load);
    total += answered;
    // Those under way at its end may not have come in.
    from = (from + Math.max(0, answered - CONNECTIONS)) % paths.length;
    await target.settle?.();
    const entries = await readMetric(redirect, "linkfence_cache_entries");
    tell(`${entries.toLocaleString("en")} of ${codes.count.toLocaleString("en")} links in memory`);
    if (entries >= codes.count) return total;
  }
  throw new Error("the links did not all come into memory");
}
