// Runs the catalogue of experiments, or the named ones, on a server and on processes of its own.
import { parseArgs } from "node:util";
import { catalogue } from "../tests/evidence/catalogue.ts";
import { type CaseResult, runCase } from "../tests/evidence/report.ts";
import { startTestServer } from "../tests/setup/test-server.mjs";

const HELP = `Runs experiments on the real product: PostgreSQL, processes, loopback HTTP.

Usage: pnpm evidence [id ...] [--file <path>] [--json]

  id             which experiments; all of them where none is named
  --file <path>  input of an experiment that takes one (real-urls: one target a line)
  --json         results as one JSON document instead of lines
  --list         what there is

Exit status: 0 all held, 1 one did not, 64 wrong arguments.
`;

function readArguments() {
  try {
    const options = {
      file: { type: "string" },
      json: { type: "boolean" },
      list: { type: "boolean" },
      help: { type: "boolean" },
    } as const;
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The statistics of a run are one machine's; the server keeps its promises to the disk here, as in production. */
async function runAll(
  ids: readonly string[],
  file: string | null,
  print: (line: string) => void,
): Promise<CaseResult[]> {
  const server = await startTestServer({});
  const results: CaseResult[] = [];
  try {
    for (const evidence of catalogue) {
      if (ids.length === 0 || ids.includes(evidence.id)) results.push(await runCase(evidence, { file }, print));
    }
  } finally {
    await server.stop();
  }
  return results;
}

async function main(): Promise<number> {
  const parsed = readArguments();
  const unknown =
    typeof parsed === "string" ? [] : parsed.positionals.filter((id) => !catalogue.some((c) => c.id === id));
  if (typeof parsed === "string" || unknown.length > 0) {
    process.stderr.write(`${typeof parsed === "string" ? parsed : `no experiment ${unknown.join(", ")}`}\n\n${HELP}`);
    return 64;
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.list) {
    for (const { id, shows } of catalogue) process.stdout.write(`${id} :: ${shows}\n`);
    return 0;
  }
  const print = values.json ? () => {} : (line: string) => void process.stdout.write(`${line}\n`);
  const results = await runAll(positionals, values.file ?? null, print);
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  process.stdout.write(
    values.json ? `${JSON.stringify({ results, passed, failed })}\n` : `${passed} passed, ${failed} failed\n`,
  );
  return failed === 0 && passed > 0 ? 0 : 1;
}

process.exitCode = await main();
