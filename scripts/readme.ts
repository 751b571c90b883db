// Writes the generated parts of README.md anew.
import { readFile, writeFile } from "node:fs/promises";
import { runCommand, UsageError } from "./command.ts";
import { readRun, withEvidence } from "./evidence-table.ts";
import { withSettings } from "./settings-table.ts";

const HELP = `Writes the generated parts of README.md anew: the tables of settings and, with --evidence, of experiments.

Usage: pnpm readme [--evidence <path>]

  --evidence <path>  what \`pnpm evidence --json\` printed: a whole run, in which everything held

Exit status: 0 written, 64 wrong arguments or a file that is no such run, nothing written.
`;
const README = new URL("../README.md", import.meta.url);

/** Reads a run. Throws a UsageError that says what is wrong with the file. */
function readEvidence(path: string): ReturnType<typeof readRun> {
  try {
    return readRun(path);
  } catch (error) {
    throw new UsageError(`--evidence ${path}: ${error instanceof Error ? error.message : error}`);
  }
}

async function write(evidence: string | undefined): Promise<void> {
  const readme = withSettings(await readFile(README, "utf8"));
  await writeFile(README, evidence === undefined ? readme : withEvidence(readme, readEvidence(evidence)));
}

await runCommand({
  help: HELP,
  options: { evidence: { type: "string" } },
  async run({ evidence }, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    await write(evidence);
    return 0;
  },
});
