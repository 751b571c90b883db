// Writes the generated parts of README.md anew.
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { readRun, withEvidence } from "./evidence-table.ts";
import { withSettings } from "./settings-table.ts";

const HELP = `Writes the generated parts of README.md anew: the tables of settings and, with --evidence, of experiments.

Usage: pnpm readme [--evidence <path>]

  --evidence <path>  what \`pnpm evidence --json\` printed: a whole run, in which everything held
`;
const README = new URL("../README.md", import.meta.url);
const EX_USAGE = 64;

async function write(evidence: string | undefined): Promise<void> {
  const readme = withSettings(await readFile(README, "utf8"));
  await writeFile(README, evidence === undefined ? readme : withEvidence(readme, readRun(evidence)));
}

try {
  const options = { evidence: { type: "string" }, help: { type: "boolean" } } as const;
  const { values } = parseArgs({ options });
  if (values.help) process.stdout.write(HELP);
  else await write(values.evidence);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
  process.exitCode = EX_USAGE;
}
