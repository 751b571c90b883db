// What else is asked of redirects from memory: how late an answer comes at a rate that leaves the process time, what pages
// cost that Express makes, and how much memory a process has after minutes at full load.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningService, readMetric } from "@linkfence/testkit";
import { readMemory } from "../../tests/evidence/process-memory.ts";
import { startBenchWrite } from "./bench-write.ts";
import { compareP99, compareRate } from "./compare.ts";
import { pin } from "./cores.ts";
import { runLoad } from "./load/load.ts";
import { ratios } from "./numbers.ts";
import { FEW_HEADERS, type Hot } from "./redirect-world.ts";
import { type Measured, measureRounds, type Target } from "./rounds.ts";
import { sendClicks } from "./send-clicks.ts";
import { startOwnTarget } from "./targets.ts";

/** Requests a second, of the open loop. */
const RATE = 4000;
/** Batches of clicks under way at once, as of one redirect process. */
const SENDERS = 1;
/** Memory is looked at so often at full load; what a process grows by is seen from the first half to the second. */
const LOOKS_A_MINUTE = 4;
/** More than this above the first half's is no noise of a collector's. */
const FLAT_MAX = 1.1;
const MIB = 1024 ** 2;

const need = (all: Map<string, Measured>, name: string) => all.get(name) as Measured;

/** At the bare server's turn as many clicks are stored as redirects would have brought: both meet the same background. */
export async function measureOpenLoop(hot: Hot): Promise<void> {
  const { bench, world, program, cores } = hot;
  const bare = await startOwnTarget("bare", world.codes.known, cores);
  let seed = 0;
  const beside: Target["beside"] = async ({ seconds }) => {
    for (let second = 0; second < seconds; second += 1) {
      const nextAt = performance.now() + 1000;
      seed += 1;
      await sendClicks(world.ingest, { clicks: RATE, codes: 1, spread: "one" }, SENDERS, seed);
      hot.beside += RATE;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, nextAt - performance.now())));
    }
  };
  try {
    const load = { paths: world.codes.one, headers: FEW_HEADERS, rate: RATE, status: 302 };
    const { rounds, seconds, tries } = bench.pace;
    const all = await measureRounds(
      {
        program,
        cores,
        rounds,
        seconds,
        tries,
        load,
        onlyServer: false,
        background: world.background,
        tell: bench.tell,
      },
      [world.target, { ...bare, beside }],
    );
    const [redirect, other] = [need(all, "redirect"), need(all, "bare")];
    hot.answered += redirect.answered;
    bench.results.spread(`open loop at ${RATE}/s, redirect: p99`, redirect.p99, "ms");
    bench.results.spread(`open loop at ${RATE}/s, bare: p99`, other.p99, "ms");
    compareP99(bench.results, `open loop at ${RATE}/s, p99 ÷ bare's`, [redirect, other], 1.5);
  } finally {
    await bare.stop();
  }
}

/** Pages that Express makes: an unknown path of the redirect, and a refusal of the admin API, which is JSON. */
export async function measurePages(hot: Hot): Promise<void> {
  const { bench, world, program, cores } = hot;
  const root = await mkdtemp(join(tmpdir(), "linkfence-bench-pages-"));
  const bare = await startOwnTarget("bare", world.codes.known, cores);
  const write = await startBenchWrite(world.url);
  await pin(write.pid, cores.server);
  const { rounds, seconds, tries } = bench.pace;
  const background = { ...world.background, processes: [...world.background.processes] };
  const shared = { program, cores, rounds, seconds, tries, onlyServer: true, background, tell: bench.tell };
  const redirectPages = { ...world.target, name: "a page of the redirect" };
  const refusals = { name: "a refusal of the admin API", port: Number(new URL(write.url).port), pid: write.pid };
  try {
    // The bare server answers anything with a redirect: each kind of answer is a load of its own, in the same rounds.
    for (const [target, path, status] of [
      [redirectPages, "/no/such/page", 404],
      [refusals, "/v1/links", 401],
    ] as const) {
      // wrk tells an error from an answer, and no error from another.
      const { status: first } = await fetch(`http://127.0.0.1:${target.port}${path}`);
      if (first !== status) throw new Error(`${target.name} is ${first}, not ${status}`);
      const paths = join(root, `${status}`);
      await writeFile(paths, `${path}\n`);
      const load = { paths, headers: FEW_HEADERS, rate: null, status: [status, 302] };
      const all = await measureRounds({ ...shared, load }, [target, bare]);
      bench.results.spread(`${target.name}: answers a second`, need(all, target.name).rate);
      compareRate(bench.results, `pages, ${target.name} ÷ bare`, need(all, target.name), need(all, "bare"), 0.4);
    }
  } finally {
    await write.stop();
    await bare.stop();
    await rm(root, { recursive: true });
  }
}

/** Resident memory of both at full load, in turn by the quarter of a minute, and what it grows to. */
export async function measureMemory(hot: Hot): Promise<void> {
  const { bench, world, program, cores } = hot;
  const { results, pace, tell } = bench;
  if (pace.minutes === 0) return;
  const bare = await startOwnTarget("bare", world.codes.known, cores);
  const load = { paths: world.codes.one, headers: FEW_HEADERS, rate: null, status: 302 };
  const seconds = 60 / LOOKS_A_MINUTE;
  const memory = { redirect: [] as number[], bare: [] as number[] };
  try {
    for (let look = 0; look < pace.minutes * LOOKS_A_MINUTE; look += 1) {
      const asked = await runLoad(program, { ...load, port: world.target.port, seconds });
      hot.answered += asked.answered;
      memory.redirect.push((await readMemory(world.redirect.pid, "VmRSS")) / MIB);
      await runLoad(program, { ...load, port: bare.port, seconds });
      memory.bare.push((await readMemory(bare.pid, "VmRSS")) / MIB);
      tell(
        `${(look + 1) / LOOKS_A_MINUTE} of ${pace.minutes} minutes, redirect ${memory.redirect.at(-1)?.toFixed(0)} MiB, bare ${memory.bare.at(-1)?.toFixed(0)} MiB`,
      );
    }
    await world.target.settle?.();
  } finally {
    await bare.stop();
  }
  const half = Math.floor(memory.redirect.length / 2);
  const late = { redirect: memory.redirect.slice(half), bare: memory.bare.slice(half) };
  results.spread(`redirect: resident memory in the second half of ${pace.minutes} minutes`, late.redirect, "MiB");
  results.spread("bare: resident memory in the same time", late.bare, "MiB");
  results.atMost("resident memory ÷ bare's", ratios(late.redirect, late.bare), 1.6);
  results.atMost(
    "resident memory, second half ÷ first",
    ratios(late.redirect, memory.redirect.slice(0, late.redirect.length)),
    FLAT_MAX,
  );
}

/** What so many links in memory take, beside the memory before them. */
export async function tellEntryBytes(
  { bench: { results } }: Hot,
  redirect: RunningService,
  before: number,
): Promise<void> {
  const entries = await readMetric(redirect, "linkfence_cache_entries");
  const [bytes, after] = [await readMetric(redirect, "linkfence_cache_bytes"), await readMemory(redirect.pid, "VmRSS")];
  results.figure("an entry, as the cache counts", bytes / entries, "bytes");
  results.figure("resident memory grown by, for an entry", (after - before) / entries, "bytes");
}
