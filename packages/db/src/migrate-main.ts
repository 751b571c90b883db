// Command: brings the databases named in the environment to the newest schema, then ends.
import { pathToFileURL } from "node:url";
import { type DatabaseName, migrate } from "./migrate.ts";

const HELP = `Brings databases to the newest schema. Safe to run any number of times, and several at once.

Usage: node packages/db/dist/migrate-main.js

Environment (at least one of them):
  DATABASE_URL         main database
  STATS_DATABASE_URL   statistics database
Each takes the URL of a role that may create tables.
`;

const VARIABLES: Record<DatabaseName, string> = { main: "DATABASE_URL", stats: "STATS_DATABASE_URL" };

/**
 * Runs the command.
 * @returns exit status: 0 done, 1 a database refused, 78 nothing to do (sysexits.h, EX_CONFIG)
 */
export async function runMigrateCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  print: (line: string) => void,
): Promise<number> {
  if (args.includes("--help")) {
    print(HELP);
    return 0;
  }
  const wanted = Object.entries(VARIABLES).flatMap(([name, variable]) => {
    const url = env[variable];
    return url ? [{ name: name as DatabaseName, url }] : [];
  });
  if (args.length > 0 || wanted.length === 0) {
    print(HELP);
    return 78;
  }
  for (const { name, url } of wanted) {
    try {
      const done = await migrate(url, name);
      print(done.length > 0 ? `${name}: ran ${done.join(", ")}` : `${name}: up to date`);
    } catch (error) {
      print(`${name}: not migrated: ${error instanceof Error ? error.message : String(error)}`);
      return 1;
    }
  }
  return 0;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await runMigrateCommand(process.argv.slice(2), process.env, (line) => console.log(line));
}
