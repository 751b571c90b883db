// Runs the catalogue of experiments, or the named ones, on a server and on processes of its own.
import { accessSync, constants as fsConstants, statSync } from "node:fs";
import { constants } from "node:os";
import { killStartedProcesses } from "@linkfence/testkit";
import { catalogue } from "../tests/evidence/catalogue.ts";
import { type CaseResult, runCase } from "../tests/evidence/report.ts";
import { startTestServer } from "../tests/setup/test-server.mjs";
import { runCommand, UsageError } from "./command.ts";

const HELP = `Runs experiments on the real product: PostgreSQL, processes, loopback HTTP.

Usage: pnpm evidence [id ...] [--times <n>] [--file <path>] [--json]
       pnpm evidence --list

  id             which experiments; all of them where none is named
  --times <n>    run them n times (1 to 100), and tell at the end what each came to
  --file <path>  input of an experiment that takes one (real-urls: one target a line)
  --json         results as one JSON document, which makes README's table (pnpm readme); the lines go to standard error
  --list         what there is

Exit status: 0 all held, 1 one did not, 64 wrong arguments.
`;
const TIMES_MAX = 100;

type Wish = { ids: readonly string[]; times: number; file: string | null };

const options = {
  times: { type: "string", default: "1" },
  file: { type: "string" },
  json: { type: "boolean", default: false },
  list: { type: "boolean", default: false },
} as const;

function decideWish(ids: readonly string[], given: { times: string; file?: string | undefined }): Wish {
  const unknown = ids.filter((id) => !catalogue.some((c) => c.id === id));
  if (unknown.length > 0) throw new UsageError(`no experiment ${unknown.join(", ")}: --list says which there are`);
  const times = /^\d{1,3}$/.test(given.times) ? Number(given.times) : 0;
  if (times < 1 || times > TIMES_MAX) throw new UsageError(`--times must be 1 to ${TIMES_MAX}`);
  const { file = null } = given;
  if (file !== null && !catalogue.some((c) => c.readsFile && (ids.length === 0 || ids.includes(c.id)))) {
    throw new UsageError("--file: none of the named experiments takes one");
  }
  if (file !== null) mustBeReadable(file);
  return { ids, times, file };
}

function mustBeReadable(file: string): void {
  try {
    if (!statSync(file).isFile()) throw new Error("it is no file");
    accessSync(file, fsConstants.R_OK);
  } catch (error) {
    throw new UsageError(`--file ${file} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** On a server that keeps its promises to the disk, as in production. A run that is broken off leaves nothing behind. */
async function runAll({ ids, times, file }: Wish, print: (line: string) => void): Promise<CaseResult[]> {
  const server = await startTestServer({});
  const breakOff = (signal: NodeJS.Signals) => {
    killStartedProcesses();
    void server.stop().finally(() => process.exit(128 + constants.signals[signal]));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, breakOff);
  // Also where an error that nobody caught ends this process: the server has a guard of its own, services have none.
  process.once("exit", killStartedProcesses);
  const results: CaseResult[] = [];
  try {
    for (let run = 1; run <= times; run += 1) {
      if (times > 1) print(`RUN ${run} of ${times}`);
      for (const evidence of catalogue) {
        if (ids.length === 0 || ids.includes(evidence.id)) results.push(await runCase(evidence, { file }, print));
      }
    }
  } finally {
    await server.stop();
  }
  return results;
}

function tally(results: readonly CaseResult[]) {
  const sum = (count: (result: CaseResult) => number) => results.reduce((total, result) => total + count(result), 0);
  return {
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    skipped: sum(({ lines }) => (lines.some(({ kind }) => kind === "skipped") ? 1 : 0)),
  };
}

function printTally(results: readonly CaseResult[], { times }: Wish, out: NodeJS.WriteStream): void {
  if (times > 1) {
    for (const { id } of catalogue) {
      const runs = results.filter((result) => result.id === id);
      const held = runs.filter(({ passed, failed }) => failed === 0 && passed > 0).length;
      if (runs.length > 0) out.write(`TALLY ${id}: held in ${held} of ${runs.length} runs\n`);
    }
  }
  const { passed, failed, skipped } = tally(results);
  if (skipped > 0) out.write(`${skipped} skipped for want of a program\n`);
  out.write(`${passed} passed, ${failed} failed\n`);
}

function list(json: boolean): void {
  const cases = catalogue.map(({ id, shows, control = false }) => ({ id, shows, control }));
  if (json) process.stdout.write(`${JSON.stringify(cases)}\n`);
  else
    for (const { id, shows, control } of cases)
      process.stdout.write(`${id} :: ${control ? "control: " : ""}${shows}\n`);
}

await runCommand({
  help: HELP,
  options,
  async run(values, ids) {
    if (values.list) {
      list(values.json);
      return 0;
    }
    const wish = decideWish(ids, values);
    const out = values.json ? process.stderr : process.stdout;
    const results = await runAll(wish, (line) => void out.write(`${line}\n`));
    const total = tally(results);
    if (values.json) process.stdout.write(`${JSON.stringify({ results, ...total })}\n`);
    printTally(results, wish, out);
    return total.failed === 0 && total.passed > 0 ? 0 : 1;
  },
});
