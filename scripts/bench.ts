// Runs benchmarks on databases of their own, and says what they came to.
import { fileURLToPath } from "node:url";
import { killStartedProcesses } from "@linkfence/testkit";
import { type Comparison, compareRuns, type Earlier, readEarlier } from "./bench/against.ts";
import type { Subject } from "./bench/bench-subject.ts";
import { clickIds } from "./bench/click-ids.ts";
import { CannotMeasure } from "./bench/cores.ts";
import { create } from "./bench/create.ts";
import { exported } from "./bench/export.ts";
import { ingest } from "./bench/ingest.ts";
import { list } from "./bench/list.ts";
import { profile } from "./bench/profile.ts";
import { quietNeighbours } from "./bench/quiet-neighbours.ts";
import { redirectCold } from "./bench/redirect-cold.ts";
import { redirectHot } from "./bench/redirect-hot.ts";
import { formatTable } from "./bench/results.ts";
import { revoke } from "./bench/revoke.ts";
import { formatResults, type Run, runSubject } from "./bench/run-subject.ts";
import { scale } from "./bench/scale.ts";
import { spool } from "./bench/spool.ts";
import { statistics } from "./bench/statistics.ts";
import { readNumber, runCommand, UsageError } from "./command.ts";

const subjects: Readonly<Record<string, Subject>> = {
  "redirect-hot": redirectHot,
  "redirect-cold": redirectCold,
  "redirect-quiet-neighbours": quietNeighbours,
  scale,
  profile,
  revoke,
  create,
  list,
  spool,
  ingest,
  "click-ids": clickIds,
  statistics,
  export: exported,
};
const OWNERS = 10_000;
const LINKS_MIN = 20_000;
const LINKS_MAX = 100_000_000;
const CLICKS_MIN = 10_000;
const ROUNDS = 5;
const ROUNDS_MAX = 100;
const SECONDS_MAX = 60;
const MINUTES_MAX = 60;
/** A machine that others use is given further chances, chosen by their use of it alone. */
const TRIES = 3;
/** What CI asks for: a minute in all. */
const QUICK = {
  subjects: ["redirect-hot", "redirect-cold"],
  links: LINKS_MIN,
  rounds: 3,
  seconds: 2,
  tries: 1,
  minutes: 0,
};
/** Where results are kept that nobody has named a place for. */
const RESULTS = fileURLToPath(new URL("../.data/bench/", import.meta.url));

const names = Object.entries(subjects).map(([name, { shows }]) => `  ${name.padEnd(26)} ${shows}`);
const HELP = `Measures the services at size, on an embedded PostgreSQL of its own and over loopback.

Usage: pnpm bench <subject> [--links <n>] [--clicks <n>] [--spread <how>] [--data <directory>] [--json]
                  [--rounds <n>] [--seconds <n>] [--minutes <n>] [--parts <part,part>] [--out <file>]
       pnpm bench [<subject>] --against <file>
       pnpm bench [<subject>] --quick

${names.join("\n")}

  --links <n>         links that the database holds (20,000 to 100,000,000); list 10 million, spool, redirect-quiet-neighbours
                      and export 20,000, ingest and click-ids 100,000, redirect-hot 200,000, profile 20,000, the others 1 million, unless it says otherwise
  --clicks <n>        clicks that ingest sends, click-ids inserts or export writes, or of the link that statistics are about (10,000 to 100 million);
                      300,000 unless it says otherwise
  --spread <how>      among the links: zipf, as visits are, or uniform
  --data <directory>  where the server keeps its databases: seeded once, and used again by the next run;
                      a temporary one where none is given. Ten million links take about 8 GB
  --rounds <n>        of redirects: how often each server is asked, in turn (5), and for how long (--seconds, 5)
  --minutes <n>       how long memory is watched at full load (10)
  --parts <names>     only these parts of a subject: ${partsHelp()}
  --against <file>    the results of an earlier run: tells which ratios got worse by more than the spread
  --quick             ${QUICK.subjects.join(" and ")}, under a minute, for CI: fails on a collapse alone, half of what is to be reached
  --out <file>        where the results go as JSON; .data/bench/<subject>.json unless it says otherwise
  --json              the results as one JSON document; progress goes to standard error

One owner has a tenth of the links, ${(OWNERS - 1).toLocaleString("en")} others share the rest. Ratios are of one run; other
figures say as much about the machine and what else it does: its load average stands beside them.
Exit status: 0 all bounds are kept, 1 one is not, could not be measured, or got worse, 64 wrong arguments.
`;

const options = {
  links: { type: "string" },
  clicks: { type: "string", default: "300000" },
  spread: { type: "string", default: "zipf" },
  data: { type: "string" },
  rounds: { type: "string" },
  seconds: { type: "string" },
  minutes: { type: "string" },
  parts: { type: "string" },
  against: { type: "string" },
  quick: { type: "boolean", default: false },
  out: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

type Given = { [Name in keyof typeof options]?: (typeof options)[Name]["type"] extends "boolean" ? boolean : string };

function partsHelp(): string {
  const listed = Object.entries(subjects).flatMap(([name, { parts }]) =>
    parts ? [`${name} ${parts.join(", ")}`] : [],
  );
  return listed.join("; ");
}

function decideRun(name: string, given: Given): Run {
  const subject = Object.hasOwn(subjects, name) ? subjects[name] : undefined;
  if (!subject) throw new UsageError(`name one subject: ${Object.keys(subjects).join(", ")}`);
  const { quick = false, spread = "zipf" } = given;
  const number = (
    what: "links" | "clicks" | "rounds" | "seconds" | "minutes",
    min: number,
    max: number,
    other: number,
  ) => readNumber(what, given[what] ?? String(other), { min, max });
  const links = number("links", LINKS_MIN, LINKS_MAX, quick ? QUICK.links : subject.links);
  const count = number("clicks", CLICKS_MIN, LINKS_MAX, 300_000);
  if (spread !== "zipf" && spread !== "uniform") throw new UsageError("--spread must be zipf or uniform");
  const parts = (given.parts ?? "").split(",").filter((part) => part !== "");
  const unknown = parts.filter((part) => !subject.parts?.includes(part));
  if (unknown.length > 0) throw new UsageError(`--parts: ${name} has no ${unknown.join(", ")}`);
  const pace = {
    rounds: number("rounds", 1, ROUNDS_MAX, quick ? QUICK.rounds : (subject.rounds ?? ROUNDS)),
    seconds: number("seconds", 1, SECONDS_MAX, quick ? QUICK.seconds : 5),
    tries: quick ? QUICK.tries : TRIES,
    minutes: number("minutes", 0, MINUTES_MAX, quick ? QUICK.minutes : 10),
  };
  const file = given.out ?? `${RESULTS}${name}.json`;
  const size = { links, owners: OWNERS };
  return { name, subject, size, clicks: { count, spread }, pace, parts, quick, data: given.data ?? null, file };
}

/** The runs that were asked for, and what their results are held against. */
async function decideRuns(given: Given, named: readonly string[]): Promise<{ runs: Run[]; earlier: Earlier | null }> {
  if (named.length > 1) throw new UsageError("name one subject, not several");
  const earlier =
    given.against === undefined ? null : await readEarlier(given.against).catch(refuseFile(given.against));
  const [name = earlier?.subject] = named;
  if (earlier && name !== earlier.subject) throw new UsageError(`--against: the file is about ${earlier.subject}`);
  if (name !== undefined && earlier) return { runs: [decideAlike(name, given, earlier)], earlier };
  if (name !== undefined) return { runs: [decideRun(name, given)], earlier };
  if (!given.quick) throw new UsageError(`name one subject: ${Object.keys(subjects).join(", ")}`);
  if (given.out !== undefined) throw new UsageError("--out takes a subject: several have a file each");
  return { runs: QUICK.subjects.map((each) => decideRun(each, given)), earlier };
}

/** A run that can be held against an earlier one: with as many links, and as short or as long. */
function decideAlike(name: string, given: Given, { links, quick }: Earlier): Run {
  const run = decideRun(name, { ...given, links: given.links ?? String(links) });
  if (run.size.links !== links) throw new UsageError(`--against: the file is about ${links} links`);
  if (run.quick !== quick) throw new UsageError(`--against: the file is ${quick ? "" : "not "}of a run with --quick`);
  return run;
}

const refuseFile = (file: string) => (error: unknown) => {
  throw new UsageError(`--against ${file}: ${error instanceof Error ? error.message : error}`);
};

const tell = (text: string) => void process.stderr.write(`${text}\n`);

/** Returns whether all is well. */
async function measure(run: Run, earlier: Earlier | null, json: boolean): Promise<boolean> {
  const results = await runSubject(run, tell);
  const { figures, claims, samples, refused } = results;
  const compared = earlier ? compareRuns(earlier.samples, samples) : [];
  const document = { subject: run.name, links: run.size.links, figures, claims, samples, refused };
  if (json) process.stdout.write(`${JSON.stringify(earlier ? { ...document, compared } : document)}\n`);
  else {
    process.stdout.write(`\n${run.name}, ${run.size.links.toLocaleString("en")} links\n${formatResults(results)}\n`);
    if (earlier) process.stdout.write(`\nagainst the earlier run\n${formatTable(compared.map(describe))}\n`);
  }
  const worse = compared.some(({ verdict }) => verdict === "slower" || verdict === "missing");
  if (earlier) return !worse;
  if (run.quick) return claims.every(({ held }) => held);
  return claims.length > 0 && claims.every(({ held }) => held) && refused.length === 0;
}

const describe = ({ what, was, is, verdict }: Comparison) => {
  const text = (sample: typeof was) => [sample.median, sample.low, sample.high].map((n) => n.toPrecision(3)).join(" ");
  return [what, text(was), is ? text(is) : "", verdict];
};

await runCommand({
  help: HELP,
  options,
  async run(values, named) {
    const { runs, earlier } = await decideRuns(values, named);
    // Also where an error that nobody caught ends this process: the server has a guard of its own, services have none.
    process.once("exit", killStartedProcesses);
    let well = true;
    for (const run of runs) {
      try {
        well = (await measure(run, earlier, values.json)) && well;
      } catch (error) {
        if (!(error instanceof CannotMeasure)) throw error;
        tell(`${run.name} was not measured: ${error.message}`);
        well &&= run.quick;
      }
    }
    return well ? 0 : 1;
  },
});
