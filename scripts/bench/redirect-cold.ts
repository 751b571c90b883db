// Redirects of links that are in no memory, each of which asks the database, beside the same question in a bare loop.
import { fileURLToPath } from "node:url";
import { readMetric } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { compareRate } from "./compare.ts";
import { type Cores, takeCores } from "./cores.ts";
import { findLoad, runMeasured } from "./load/load.ts";
import { FEW_HEADERS, openRedirectWorld, type RedirectWorld, readLedger } from "./redirect-world.ts";
import { type Measured, measureRounds, type Target } from "./rounds.ts";

const SELECT = fileURLToPath(new URL("servers/select.mjs", import.meta.url));
/** As many questions at once as the load has connections. */
const WIDTH = 64;
/** So few links are kept that none is still there when it is asked for again. */
const KEPT = "1000";
/** Of the answers, in case a link is asked for again within a thousand others. */
const MISSES_MIN = 0.99;

/** The bare loop, a process for each measurement, on the server's core as the redirect is. */
function bareLoop({ url, codes }: RedirectWorld, cores: Cores): Target {
  const run = (seconds: number) => {
    const how = JSON.stringify({ url, codes: codes.known, seconds, width: WIDTH });
    return runMeasured("taskset", ["-c", `${cores.server}`, process.execPath, SELECT, how], seconds);
  };
  // It ends with each measurement: its use of processors is that of the load.
  return { name: "SELECT", port: 0, pid: 0, run };
}

async function measure(bench: Bench, world: RedirectWorld, cores: Cores): Promise<void> {
  const { results, pace, tell } = bench;
  const load = { paths: world.codes.all, headers: FEW_HEADERS, rate: null, status: 302 };
  const { rounds, seconds, tries } = pace;
  const shared = { program: await findLoad(), cores, rounds, seconds, tries, load, background: world.background, tell };
  const targets = [world.target, bareLoop(world, cores)];
  const all = await measureRounds({ ...shared, onlyServer: false }, targets);
  for (const [name, { rate, p99 }] of all) {
    results.spread(`${name}: answers a second`, rate);
    results.spread(`${name}: p99`, p99, "ms");
  }
  const [redirect, bare] = ["redirect", "SELECT"].map((name) => all.get(name) as Measured) as [Measured, Measured];
  compareRate(results, "cold, redirects ÷ SELECT by key in a bare loop", redirect, bare, 0.7);
  const { answered, accepted, rows } = await readLedger(world);
  const misses = await readMetric(world.redirect, "linkfence_cache_misses_total");
  results.atLeast("misses ÷ redirects", misses / answered, MISSES_MIN);
  results.atMost("clicks lost: answered − stored", Math.abs(answered - rows) + Math.abs(answered - accepted), 0);
}

export const redirectCold: Subject = {
  shows: "redirects of links that are in no memory, beside the same SELECT in a bare loop",
  links: 1_000_000,
  async run(bench) {
    const cores = await takeCores();
    const env = { CACHE_MAX_ENTRIES: KEPT };
    const world = await openRedirectWorld(bench, cores, { env, codes: bench.size.links });
    try {
      bench.results.noteLoad("before");
      await measure(bench, world, cores);
      bench.results.noteLoad("after");
    } finally {
      await world.close();
    }
  },
};
