// What redirects come to with more processes, and what they cost with more links. All that is compared runs side by side, on
// the same cores, and is asked in turn: whoever is not asked idles.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningService, readMetric } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { compareRate } from "./compare.ts";
import { type Cores, takeCores } from "./cores.ts";
import { findLoad, runLoad } from "./load/load.ts";
import { ratios } from "./numbers.ts";
import { prime } from "./prime.ts";
import { CODES, countClicks, FEW_HEADERS, openClickSide, startRedirect, writeCodes } from "./redirect-world.ts";
import { type Measured, measureRounds, type Rounds, type Target } from "./rounds.ts";
import { openSeeded, pickActive, type Size } from "./seed.ts";

const PARTS = ["workers", "hot", "cold"] as const;
/** The setting takes no more. */
const WORKERS_MAX = 64;
const SMALLEST = 10_000;
/** So few links are kept that none is still there when it is asked for again. */
const KEPT = "1000";
/** Of a cold part: what the load holds in memory, and more than it asks for in a run. */
const COLD_CODES = 1_000_000;

type Scale = {
  bench: Bench;
  cores: Cores;
  program: Rounds["program"];
  root: string;
  ingest: RunningService;
  /** All that were started, and redirects that the load has counted. */
  redirects: RunningService[];
  answered: number;
};

/** 1, 2, 4 and so on, and as many as there are cores. */
export function workerCounts(cores: number): number[] {
  const most = Math.min(cores, WORKERS_MAX);
  const doubled = Array.from({ length: 7 }, (_, n) => 2 ** n).filter((count) => count < most);
  return [...doubled, most];
}

/** 10,000, ten times as many and so on, and as many as were asked for. */
export function linkCounts(most: number): number[] {
  const counts: number[] = [];
  for (let links = SMALLEST; links < most; links *= 10) counts.push(links);
  return [...counts, most];
}

/** Rounds of all targets, with whatever was started before them idle beside. */
async function ask(scale: Scale, targets: readonly Target[], load: Rounds["load"], on?: readonly number[]) {
  const { bench, cores, program, ingest, redirects } = scale;
  const { rounds, seconds, tries } = bench.pace;
  const servers = [bench.server.pid(), ...redirects.map(({ pid }) => pid)];
  const background = { servers, processes: [ingest.pid] };
  const shared = { program, cores, rounds, seconds, tries, load, onlyServer: false, background, tell: bench.tell };
  const all = await measureRounds(on ? { ...shared, on } : shared, targets);
  for (const { answered } of all.values()) scale.answered += answered;
  return all;
}

/** Tells what each came to, and what it is of the first. */
function tell({ bench: { results } }: Scale, part: string, all: Map<string, Measured>): void {
  const [[least, first] = ["", undefined]] = [...all];
  for (const [name, measured] of all) {
    results.spread(`${part}, ${name}: answers a second`, measured.rate);
    results.spread(`${part}, ${name}: median`, measured.p50, "ms");
    results.spread(`${part}, ${name}: p99`, measured.p99, "ms");
    results.spread(`${part}, ${name}: the load's core in use`, measured.loadCore);
    if (!first || name === least) continue;
    compareRate(results, `${part}, ${name} ÷ ${least}`, measured, first);
    results.spread(`${part}, p99, ${name} ÷ ${least}`, ratios(measured.p99, first.p99), "", "less");
  }
}

/** Each number of workers may use all cores, those of the load and of what is behind it included. */
async function measureWorkers(scale: Scale, url: string): Promise<void> {
  const { bench, cores, root, ingest } = scale;
  const counts = workerCounts(cores.all.length);
  bench.results.figure(
    "cores",
    `${cores.all.length}; the workers may use all of them, whatever their number, and the load, the database and the ingest are on one: ` +
      `${counts.at(-1)} workers take turns with them`,
  );
  const codes = await writeCodes(await mkdtemp(join(root, "workers-")), await pickActive(url, 1));
  const targets: Target[] = [];
  for (const count of counts) {
    const env = { REDIRECT_WORKERS: String(count) };
    const { redirect, target } = await startRedirect({ url, ingest, root }, cores.all.join(), env);
    scale.redirects.push(redirect);
    targets.push({ ...target, name: count === 1 ? "1 worker" : `${count} workers`, hasWorkers: count > 1 });
  }
  const load = { paths: codes.one, headers: FEW_HEADERS, rate: null, status: 302 };
  tell(scale, "workers", await ask(scale, targets, load, cores.all));
}

/** At each size: links from memory as visitors ask for them, or links that are in no memory. */
async function measureLinks(scale: Scale, part: "hot" | "cold", places: readonly { size: Size; url: string }[]) {
  const { bench, cores, root, ingest, program } = scale;
  const targets: Target[] = [];
  for (const { size, url } of places) {
    const name = `${size.links.toLocaleString("en")} links`;
    const folder = join(root, `${part}-${size.links}`);
    await mkdir(folder);
    const most = part === "hot" ? CODES : COLD_CODES;
    const codes = await writeCodes(folder, await pickActive(url, most, { scattered: true }));
    const env: Record<string, string> = part === "hot" ? {} : { CACHE_MAX_ENTRIES: KEPT };
    const { redirect, target } = await startRedirect({ url, ingest, root }, cores.server, env);
    scale.redirects.push(redirect);
    if (part === "hot") scale.answered += await prime({ redirect, target, codes }, program, bench.tell);
    const paths = part === "hot" ? codes.zipf : codes.all;
    const load = { port: target.port, paths, headers: FEW_HEADERS, rate: null, status: 302 };
    targets.push({ ...target, name, run: (seconds) => runLoad(program, { ...load, seconds }) });
  }
  tell(scale, part, await ask(scale, targets, { paths: "", headers: FEW_HEADERS, rate: null, status: 302 }));
}

async function closeLedger({ bench: { results }, redirects, answered: asked }: Scale, statsUrl: string): Promise<void> {
  const sum = async (sample: string) => {
    const values = await Promise.all(redirects.map((redirect) => readMetric(redirect, sample)));
    return values.reduce((total, value) => total + value, 0);
  };
  const [accepted, answered] = [
    await sum("linkfence_clicks_accepted_total"),
    await sum('linkfence_answers_total{outcome="redirect"}'),
  ];
  results.figure("redirects answered, as the load counts", asked);
  results.atMost("redirects answered − clicks counted", Math.abs(answered - accepted), 0);
  results.atMost("clicks lost: counted − stored", Math.abs(accepted - (await countClicks(statsUrl))), 0);
  results.atLeast("answers that the services know of ÷ those that came", answered / asked, 1);
}

/** All sizes on one server, which was started anew for each that had to be made. */
async function openSizes({ server, size, tell }: Bench): Promise<{ size: Size; url: string }[]> {
  const sizes = linkCounts(size.links).map((links) => ({ ...size, links }));
  for (const each of sizes) await openSeeded(server, each, tell);
  const places = [];
  for (const each of sizes) places.push({ size: each, url: await openSeeded(server, each, () => {}) });
  return places;
}

export const scale: Subject = {
  shows: "redirects by the number of worker processes, and from memory and cold as links grow from 10,000 to --links",
  links: 1_000_000,
  parts: PARTS,
  async run(bench) {
    const cores = await takeCores();
    const program = await findLoad();
    const { parts, results } = bench;
    const wanted = (part: (typeof PARTS)[number]) => parts.length === 0 || parts.includes(part);
    const places = await openSizes(bench);
    const root = await mkdtemp(join(tmpdir(), "linkfence-bench-scale-"));
    const { statsUrl, ingest } = await openClickSide(bench, cores);
    const scale: Scale = { bench, cores, program, root, ingest, redirects: [], answered: 0 };
    try {
      results.noteLoad("before");
      if (wanted("workers")) await measureWorkers(scale, places[0]?.url ?? "");
      if (wanted("hot")) await measureLinks(scale, "hot", places);
      if (wanted("cold")) await measureLinks(scale, "cold", places);
      await closeLedger(scale, statsUrl);
      results.noteLoad("after");
    } finally {
      for (const redirect of scale.redirects) await redirect.stop();
      await ingest.stop();
      await rm(root, { recursive: true, force: true });
    }
  },
};
