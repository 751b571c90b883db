// Runs one benchmark on a database of its own, and says what it came to.
import { constants } from "node:os";
import { killStartedProcesses } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench/bench-subject.ts";
import { clickIds } from "./bench/click-ids.ts";
import { creation } from "./bench/creation.ts";
import { exported } from "./bench/export.ts";
import { ingest } from "./bench/ingest.ts";
import { listing } from "./bench/listing.ts";
import { neighbours } from "./bench/neighbours.ts";
import { openOwnServer } from "./bench/own-server.ts";
import { createResults, formatTable } from "./bench/results.ts";
import { revocation } from "./bench/revocation.ts";
import { spool } from "./bench/spool.ts";
import { statistics } from "./bench/statistics.ts";
import { readNumber, runCommand, UsageError } from "./command.ts";

const subjects: Readonly<Record<string, Subject>> = {
  listing,
  creation,
  revocation,
  spool,
  neighbours,
  ingest,
  "click-ids": clickIds,
  statistics,
  export: exported,
};
const OWNERS = 10_000;
const LINKS_MIN = 20_000;
const LINKS_MAX = 100_000_000;
const CLICKS_MIN = 10_000;
/** Seeding ten million links takes minutes, measuring them as many; this ends what hangs. */
const DEADLINE_MS = 60 * 60_000;

const names = Object.entries(subjects).map(([name, { shows }]) => `  ${name.padEnd(12)} ${shows}`);
const HELP = `Measures the services at size, on an embedded PostgreSQL of its own and over loopback. Never part of a test run.

Usage: pnpm bench <subject> [--links <n>] [--clicks <n>] [--spread <how>] [--data <directory>] [--json]

${names.join("\n")}

  --links <n>         links that the database holds (20,000 to 100,000,000); listing 10 million, spool, neighbours and
                      export 20,000, ingest and click-ids 100,000, the others 1 million, unless it says otherwise
  --clicks <n>        clicks that ingest sends, click-ids inserts or export writes, or of the link that statistics are about (10,000 to 100 million);
                      300,000 unless it says otherwise
  --spread <how>      among the links: zipf, as visits are, or uniform
  --data <directory>  where the server keeps its databases: seeded once, and used again by the next run;
                      a temporary one where none is given. Ten million links take about 8 GB
  --json              the results as one JSON document; progress goes to standard error

One owner has a tenth of the links, ${(OWNERS - 1).toLocaleString("en")} others share the rest. Ratios are of one run; other
figures say as much about the machine and what else it does: its load average stands beside them.
Exit status: 0 all bounds are kept, 1 one is not, 64 wrong arguments.
`;

type Wish = {
  subject: Subject;
  name: string;
  links: number;
  clicks: Bench["clicks"];
  data: string | null;
  json: boolean;
};

const options = {
  links: { type: "string" },
  clicks: { type: "string", default: "300000" },
  spread: { type: "string", default: "zipf" },
  data: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

function decideWish(
  [name = "", ...more]: readonly string[],
  given: {
    links?: string | undefined;
    clicks: string;
    spread: string;
    data?: string | undefined;
    json: boolean;
  },
): Wish {
  const subject = Object.hasOwn(subjects, name) ? subjects[name] : undefined;
  if (!subject || more.length > 0) throw new UsageError(`name one subject: ${Object.keys(subjects).join(", ")}`);
  const links = Number(given.links ?? subject.links);
  if (!Number.isInteger(links) || links < LINKS_MIN || links > LINKS_MAX)
    throw new UsageError(`--links must be ${LINKS_MIN} to ${LINKS_MAX}`);
  const count = readNumber("clicks", given.clicks, { min: CLICKS_MIN, max: LINKS_MAX });
  const { spread } = given;
  if (spread !== "zipf" && spread !== "uniform") throw new UsageError("--spread must be zipf or uniform");
  return { subject, name, links, clicks: { count, spread }, data: given.data ?? null, json: given.json };
}

async function measure({ subject, name, links, clicks, data, json }: Wish): Promise<number> {
  const tell = (text: string) => void process.stderr.write(`${text}\n`);
  const results = createResults(tell);
  const server = await openOwnServer(data);
  const end = (status: number) => {
    killStartedProcesses();
    void server.close().finally(() => process.exit(status));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => end(128 + constants.signals[signal]));
  // Also where an error that nobody caught ends this process: the server has a guard of its own, services have none.
  process.once("exit", killStartedProcesses);
  const late = setTimeout(() => {
    tell(`it took longer than ${DEADLINE_MS / 60_000} minutes`);
    end(1);
  }, DEADLINE_MS);
  try {
    await subject.run({ server, size: { links, owners: OWNERS }, clicks, results, tell });
  } finally {
    clearTimeout(late);
    await server.close();
  }
  const { figures, claims } = results;
  if (json) process.stdout.write(`${JSON.stringify({ subject: name, links, figures, claims })}\n`);
  else {
    const rows = [
      ...figures.map(({ what, value }) => [what, value, "", ""]),
      ...claims.map(({ what, value, bound, held }) => [what, value, bound, held ? "kept" : "NOT KEPT"]),
    ];
    process.stdout.write(`\n${name}, ${links.toLocaleString("en")} links\n${formatTable(rows)}\n`);
  }
  return claims.length > 0 && claims.every(({ held }) => held) ? 0 : 1;
}

await runCommand({ help: HELP, options, run: (values, names) => measure(decideWish(names, values)) });
