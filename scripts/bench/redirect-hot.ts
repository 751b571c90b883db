// Redirects from memory beside servers that do less: a bare one of Node's, nginx, and the same logic in two frameworks.
import { readMemory } from "../../tests/evidence/process-memory.ts";
import type { Subject } from "./bench-subject.ts";
import { compareP99, compareRate } from "./compare.ts";
import { takeCores } from "./cores.ts";
import { findLoad } from "./load/load.ts";
import { prime } from "./prime.ts";
import { measureMemory, measureOpenLoop, measurePages, tellEntryBytes } from "./redirect-hot-more.ts";
import { BROWSER_HEADERS, FEW_HEADERS, type Hot, openRedirectWorld, readLedger } from "./redirect-world.ts";
import { type Measured, measureRounds } from "./rounds.ts";
import { startNginx, startOwnTarget } from "./targets.ts";

const PARTS = ["one", "zipf", "open", "pages", "memory"] as const;

async function measurePart(hot: Hot, paths: string, headers: Record<string, string>, others: boolean) {
  const { bench, world, cores } = hot;
  const own = others ? (["bare", "fastify", "express"] as const) : (["bare"] as const);
  const started = await Promise.all(own.map((name) => startOwnTarget(name, world.codes.known, cores)));
  const nginx = others ? await startNginx(cores) : null;
  if (others && nginx === null) bench.tell("nginx is not installed (Debian: apt-get install nginx-light): left out");
  const targets = [world.target, ...started, ...(nginx ? [nginx] : [])];
  try {
    const load = { paths, headers, rate: null, status: 302 };
    const { rounds, seconds, tries } = bench.pace;
    const { program } = hot;
    const shared = {
      program,
      cores,
      rounds,
      seconds,
      tries,
      load,
      onlyServer: true,
      background: world.background,
      tell: bench.tell,
    };
    const measured = await measureRounds(shared, targets);
    hot.answered += measured.get("redirect")?.answered ?? 0;
    return measured;
  } finally {
    await Promise.all([...started, ...(nginx ? [nginx] : [])].map((target) => target.stop()));
  }
}

const need = (all: Map<string, Measured>, name: string) => all.get(name) as Measured;

function tellFigures({ bench: { results } }: Hot, part: string, all: Map<string, Measured>): void {
  for (const [name, { rate, p99 }] of all) {
    results.spread(`${part}, ${name}: answers a second`, rate);
    results.spread(`${part}, ${name}: p99`, p99, "ms");
  }
}

async function measureOneCode(hot: Hot): Promise<void> {
  const { results, quick } = hot.bench;
  const all = await measurePart(hot, hot.world.codes.one, FEW_HEADERS, !quick);
  tellFigures(hot, "one code", all);
  const [redirect, bare] = [need(all, "redirect"), need(all, "bare")];
  compareRate(results, "one code, redirect ÷ bare", redirect, bare, 0.7);
  compareP99(results, "one code, p99 ÷ bare's", [redirect, bare], 2.5);
  const [fastify, express, nginx] = ["fastify", "express", "nginx"].map((name) => all.get(name));
  if (fastify) compareRate(results, "one code, redirect ÷ fastify", redirect, fastify);
  if (express) compareRate(results, "one code, redirect ÷ Express 5", redirect, express, 5);
  if (nginx) compareRate(results, "one code, redirect ÷ nginx", redirect, nginx, 0.38);
}

async function measureZipf(hot: Hot): Promise<void> {
  const { redirect } = hot.world;
  const before = await readMemory(redirect.pid, "VmRSS");
  hot.answered += await prime(hot.world, hot.program, hot.bench.tell);
  await tellEntryBytes(hot, redirect, before);
  const all = await measurePart(hot, hot.world.codes.zipf, BROWSER_HEADERS, false);
  tellFigures(hot, "Zipf", all);
  compareRate(
    hot.bench.results,
    "Zipf over 100,000 codes, redirect ÷ bare",
    need(all, "redirect"),
    need(all, "bare"),
    0.65,
  );
}

/** Nothing that was answered may be missing among what is stored. */
async function closeLedger({ bench: { results }, world, answered: asked, beside }: Hot): Promise<void> {
  const { answered, accepted, dropped, rows } = await readLedger(world);
  results.figure("redirects answered, as the load counts", asked);
  results.figure("redirects answered, as the service counts", answered);
  results.atMost("redirects answered − clicks counted", Math.abs(answered - accepted), 0);
  results.atMost("clicks lost: counted − stored", Math.abs(accepted + beside - rows), 0);
  results.atMost("clicks dropped", dropped, 0);
  if (asked > 0) results.atLeast("answers that the service knows of ÷ those that came", answered / asked, 1);
}

export const redirectHot: Subject = {
  shows: "redirects from memory, every click stored, beside a bare server of Node's, nginx, fastify and Express",
  links: 200_000,
  parts: PARTS,
  async run(bench) {
    const cores = await takeCores();
    const program = await findLoad();
    const { results, parts } = bench;
    const wanted = (part: (typeof PARTS)[number]) => parts.length === 0 || parts.includes(part);
    results.figure("the load", program === "wrk" ? "wrk" : "a client of our own, as wrk is not installed");
    const world = await openRedirectWorld(bench, cores);
    const hot: Hot = { bench, world, program, cores, answered: 0, beside: 0 };
    try {
      results.noteLoad("before");
      if (wanted("one")) await measureOneCode(hot);
      if (wanted("zipf") && !bench.quick) await measureZipf(hot);
      if (wanted("open") && !bench.quick) await measureOpenLoop(hot);
      if (wanted("pages") && !bench.quick) await measurePages(hot);
      if (wanted("memory") && !bench.quick) await measureMemory(hot);
      await closeLedger(hot);
      results.noteLoad("after");
    } finally {
      await world.close();
    }
  },
};
