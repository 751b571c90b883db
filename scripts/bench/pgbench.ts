// pgbench (PostgreSQL manual, its own page) with statements of ours: what the database does for them when nobody stands
// in front of it. The embedded server does not bring it.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Where Debian keeps the programs of each version. */
const DEBIAN = "/usr/lib/postgresql";

export const PGBENCH_MISSING =
  "pgbench is not installed (Debian: apt-get install -y --no-install-recommends postgresql-15): nothing to compare with";

/** Finds the program in the path, and where Debian puts it; undefined where there is none. */
export async function findPgbench(): Promise<string | undefined> {
  const versions = await readdir(DEBIAN).catch(() => []);
  const homes = versions.map((version) => join(DEBIAN, version, "bin"));
  for (const home of [...(process.env.PATH ?? "").split(delimiter), ...homes]) {
    const program = join(home, "pgbench");
    const works = await run(program, ["--version"], { timeout: 10_000 }).catch(() => undefined);
    if (works) return program;
  }
  return undefined;
}

/** A statement with its parameters `$1`, ...; those that are texts of SQL, such as `:code`, are put in as they are. */
export type Statement = { text: string; values: readonly (string | null)[] };

export type PgbenchRun = { program: string; url: string; clients: number; seconds: number };

/**
 * Runs statements as one script; each client prepares them once. In a value, `:code` is a new random number of 8 digits.
 * @returns scripts run to their end in a second
 */
export async function runPgbench({ program, url, clients, seconds }: PgbenchRun, statements: readonly Statement[]) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-pgbench-"));
  const script = join(directory, "script.sql");
  await writeFile(script, writeScript(statements));
  const { hostname, port, username, password, pathname } = new URL(url);
  try {
    const { stdout } = await run(
      program,
      // Not pgbench's own prepared mode, which takes what follows any colon, also within a text, for a variable.
      [
        "-n",
        "-M",
        "simple",
        "-c",
        `${clients}`,
        "-j",
        `${Math.min(2, clients)}`,
        "-T",
        `${seconds}`,
        "-f",
        script,
        "-D",
        "ready=0",
      ],
      {
        env: {
          PATH: process.env.PATH,
          PGHOST: hostname,
          PGPORT: port,
          PGUSER: username,
          PGPASSWORD: decodeURIComponent(password),
          PGDATABASE: pathname.slice(1),
        },
        timeout: (seconds + 60) * 1000,
      },
    );
    const tps = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
    if (!(tps > 0)) throw new Error(`pgbench said no rate:\n${stdout}`);
    return tps;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function writeScript(statements: readonly Statement[]): string {
  const literal = (value: string | null) => (value === null ? "NULL" : `'${value.replaceAll("'", "''")}'`);
  const prepare = statements.map(({ text }, i) => `PREPARE statement${i} AS ${text.replaceAll(/\s*\n\s*/g, " ")};`);
  const execute = statements.map(({ values }, i) => `EXECUTE statement${i} (${values.map(literal).join(", ")});`);
  return [
    "\\if :ready",
    "\\else",
    ...prepare,
    "\\set ready 1",
    "\\endif",
    "\\set code random(10000000, 99999999)",
    ...execute,
    "",
  ].join("\n");
}
