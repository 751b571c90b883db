// Where the time of an answer goes, line by line beside the bare server's: a profile of each at full load, in turn. What a
// line has of a profile's samples, that part it has of the time between two answers.
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { waitFor } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { takeCores } from "./cores.ts";
import { cpuOf } from "./cpu-time.ts";
import { findLoad, runLoad } from "./load/load.ts";
import { median, ratios, spreadOf } from "./numbers.ts";
import { FEW_HEADERS, openRedirectWorld, readLedger } from "./redirect-world.ts";
import { waitForRest } from "./rest.ts";
import type { Rounds, Target } from "./rounds.ts";
import { emptySums, GROUPS, type Group, type Profile, readSources, type SourceOf, sumSelfTime } from "./self-time.ts";
import { startOwnTarget } from "./targets.ts";

const PRELOAD = new URL("servers/profiled.mjs", import.meta.url);
const PROGRAM = fileURLToPath(new URL("../../services/redirect/dist/main.js", import.meta.url));
/** As Node's own option; each sample is a signal to the thread, and takes a few µs. */
const INTERVAL_US = 1000;
const WARM_UP_SECONDS = 3;
/** Of a load before the profile begins and after it ends: it is at full height in between. */
const MARGIN_MS = 500;

type Place = { target: Target; directory: string; sourceOf: SourceOf };
type Profiled = {
  /** Answers a second, without a profile and with one. */
  plain: number[];
  profiled: number[];
  /** µs in all profiles by group. */
  sums: Record<Group, number>;
  /** ms in all profiles, and of processors: of the thread that answers, and of all threads. */
  ms: number;
  main: number;
  all: number;
};

/** ms that the thread which answers took. */
async function cpuOfMain(pid: number): Promise<number> {
  return cpuOf(`${pid}/task/${pid}`);
}

/** Profiles while a load goes on. Returns the load's answers a second. */
async function profileOnce({ target, directory, sourceOf }: Place, load: LoadOf, seconds: number, into: Profiled) {
  const file = join(directory, `${into.profiled.length + 1}.cpuprofile`);
  const { settle, pid } = target;
  const loading = load(seconds + (2 * MARGIN_MS) / 1000);
  await pause(MARGIN_MS);
  const before = [await cpuOfMain(pid), await cpuOf(pid), performance.now()] as const;
  process.kill(pid, "SIGWINCH");
  await pause(seconds * 1000);
  process.kill(pid, "SIGWINCH");
  into.main += (await cpuOfMain(pid)) - before[0];
  into.all += (await cpuOf(pid)) - before[1];
  into.ms += performance.now() - before[2];
  const { rate, answered } = await loading;
  into.profiled.push(rate);
  await settle?.();
  const read = async () => JSON.parse(await readFile(file, "utf8")) as Profile;
  await waitFor("the profile", async () => existsSync(file) && (await read().then(Boolean, () => false)));
  const sums = sumSelfTime(await read(), sourceOf);
  for (const group of Object.keys(GROUPS) as Group[]) into.sums[group] += sums[group];
  return answered;
}
type LoadOf = (seconds: number) => ReturnType<typeof runLoad>;

/**
 * µs of an answer by group, and of other threads of the process. V8 takes a thread for idle all the while that the event loop
 * looks for what has come in, reads it and parses it: idle is what the system says that nobody has used of the core.
 */
function perAnswer({ sums, profiled, ms, main, all }: Profiled) {
  const total = Object.values(sums).reduce((sum, us) => sum + us, 0);
  const us = 1e6 / median(profiled);
  const parts = Object.fromEntries(Object.entries(sums).map(([group, part]) => [group, (part / total) * us]));
  const { program = 0, idle = 0 } = parts;
  const unused = Math.max(0, 1 - all / ms) * us;
  const groups = { ...parts, program: program + idle - unused, idle: unused } as Record<Group, number>;
  return { parts: groups, total: us, threads: ((all - main) / ms) * us };
}

function formatProfile(redirect: Profiled, bare: Profiled): string {
  const [of, to] = [perAnswer(redirect), perAnswer(bare)];
  const row = (name: string, a: number, b: number) =>
    `| ${name} | ${a.toFixed(1)} | ${b.toFixed(1)} | ${a >= b ? "+" : "−"}${Math.abs(a - b).toFixed(1)} | ${Math.round((a / of.total) * 100)} % |`;
  const groups = (Object.keys(GROUPS) as Group[]).map((group) => row(GROUPS[group], of.parts[group], to.parts[group]));
  return [
    "| µs of an answer | redirect | bare | difference | of the redirect |",
    "| --- | ---: | ---: | ---: | ---: |",
    ...groups,
    row("**in all**", of.total, to.total),
    row("of that, the core was another thread's of the same process", of.threads, to.threads),
  ].join("\n");
}

async function measure(bench: Bench, places: readonly Place[], background: Rounds["background"], paths: string) {
  const program = await findLoad();
  const all = places.map((): Profiled => ({ plain: [], profiled: [], sums: emptySums(), ms: 0, main: 0, all: 0 }));
  const restOf = async () => {
    const used = await Promise.all(background.processes.map((pid) => cpuOf(pid)));
    return used.reduce((sum, ms) => sum + ms, 0);
  };
  let answered = 0;
  const turn = async (which: number, round: number) => {
    const [place, into] = [places[which] as Place, all[which] as Profiled];
    const { target } = place;
    const load: LoadOf = (seconds) =>
      runLoad(program, { port: target.port, paths, headers: FEW_HEADERS, rate: null, status: 302, seconds });
    if (round === 0) answered += which === 0 ? (await load(WARM_UP_SECONDS)).answered : 0;
    await target.settle?.();
    await waitForRest(restOf, bench.tell);
    const plain = await load(bench.pace.seconds);
    into.plain.push(plain.rate);
    await target.settle?.();
    await waitForRest(restOf, bench.tell);
    const profiled = await profileOnce(place, load, bench.pace.seconds, into);
    if (which === 0) answered += plain.answered + profiled;
    bench.tell(`round ${round + 1} of ${bench.pace.rounds}, ${target.name}: ${Math.round(plain.rate)}/s`);
  };
  for (let round = 0; round < bench.pace.rounds; round += 1)
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) await turn(which, round);
  return { all: all as [Profiled, Profiled], answered };
}

export const profile: Subject = {
  shows: "where the time of a redirect goes, line by line beside the bare server's, from profiles at full load",
  links: 20_000,
  async run(bench) {
    const cores = await takeCores();
    const { results } = bench;
    const root = await mkdtemp(join(tmpdir(), "linkfence-bench-profile-"));
    const profiled = async (name: string) => {
      const directory = await mkdtemp(join(root, `${name}-`));
      const env = {
        NODE_OPTIONS: `--import=${PRELOAD}`,
        BENCH_PROFILE_DIR: directory,
        BENCH_PROFILE_US: `${INTERVAL_US}`,
      };
      return { directory, env };
    };
    const [ofRedirect, ofBare] = [await profiled("redirect"), await profiled("bare")];
    const world = await openRedirectWorld(bench, cores, { env: ofRedirect.env, codes: 1 });
    const bare = await startOwnTarget("bare", world.codes.known, cores, ofBare.env);
    try {
      results.noteLoad("before");
      const sourceOf = readSources(pathToFileURL(PROGRAM).href, await readFile(PROGRAM, "utf8"));
      const places = [
        { target: world.target, directory: ofRedirect.directory, sourceOf },
        { target: bare, directory: ofBare.directory, sourceOf: () => null },
      ];
      const { all, answered } = await measure(bench, places, world.background, world.codes.one);
      const [redirect, other] = all;
      results.spread("redirect: answers a second", redirect.plain);
      results.spread("bare: answers a second", other.plain);
      results.spread("redirect ÷ bare", ratios(redirect.plain, other.plain), "", "more");
      results.spread("redirect, profiled ÷ not", ratios(redirect.profiled, redirect.plain));
      results.spread("bare, profiled ÷ not", ratios(other.profiled, other.plain));
      const ledger = await readLedger(world);
      results.figure("redirects answered, as the load counts", answered);
      results.atMost("clicks lost: answered − stored", Math.abs(ledger.answered - ledger.rows), 0);
      const table = formatProfile(redirect, other);
      const { median: ratio, low, high } = spreadOf(ratios(redirect.plain, other.plain));
      const digits = (value: number) => value.toFixed(2);
      results.tables.push(
        `${table}\n\nIn the same ${bench.pace.rounds} rounds, without a profile: ${digits(ratio)} (${digits(low)} to ${digits(high)}) of the bare server's answers.`,
      );
      bench.tell(table);
      results.noteLoad("after");
    } finally {
      await bare.stop();
      await world.close();
      await rm(root, { recursive: true, force: true });
    }
  },
};
