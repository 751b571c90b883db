// Writes the generated parts of README.md and of the redirect's PROFILE.md anew.
import { readFile, writeFile } from "node:fs/promises";
import { runCommand, UsageError } from "./command.ts";
import { readRun, withEvidence } from "./evidence-table.ts";
import { readProfile, withProfile } from "./profile-table.ts";
import { withSettings } from "./settings-table.ts";

const HELP = `Writes the generated parts of README.md anew: the tables of settings and, with --evidence, of experiments.

Usage: pnpm readme [--evidence <path>] [--profile <path>]

  --evidence <path>  what \`pnpm evidence --json\` printed: a whole run, in which everything held
  --profile <path>   the results of \`pnpm bench profile\`, whose table goes to services/redirect/PROFILE.md

Exit status: 0 written, 64 wrong arguments or a file that is no such run, nothing written.
`;
const README = new URL("../README.md", import.meta.url);
const PROFILE = new URL("../services/redirect/PROFILE.md", import.meta.url);

/** Reads a run. Throws a UsageError that says what is wrong with the file. */
function readFrom<T>(option: string, path: string, read: (path: string) => T): T {
  try {
    return read(path);
  } catch (error) {
    throw new UsageError(`--${option} ${path}: ${error instanceof Error ? error.message : error}`);
  }
}

type Paths = { evidence?: string | undefined; profile?: string | undefined };

async function write({ evidence, profile }: Paths): Promise<void> {
  const readme = withSettings(await readFile(README, "utf8"));
  const run = evidence === undefined ? null : readFrom("evidence", evidence, readRun);
  const table = profile === undefined ? null : readFrom("profile", profile, readProfile);
  await writeFile(README, run ? withEvidence(readme, run) : readme);
  if (table !== null) await writeFile(PROFILE, withProfile(await readFile(PROFILE, "utf8"), table));
}

await runCommand({
  help: HELP,
  options: { evidence: { type: "string" }, profile: { type: "string" } },
  async run(paths, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    await write(paths);
    return 0;
  },
});
