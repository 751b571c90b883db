// What `npm start` runs: answers for its arguments before anything is installed or built, then does both, and starts. It is no
// TypeScript, as a fresh clone has nothing yet that reads that.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const HELP = `Starts linkfence: an embedded PostgreSQL, the redirect, write and click-ingest services.

Usage: npm start

Environment, all of it optional (README.md lists the rest):
  LINKFENCE_DATA_DIR   where data is kept                         .data
  LINKFENCE_PORT_BASE  first port: redirects +0, admin API +1     7000
  LINKFENCE_REDIRECTS  number of redirect processes               1
  DATABASE_URL, STATS_DATABASE_URL   use these servers instead of the embedded one
  PUBLIC_BASE_URL      origin of short URLs                       the redirect's own URL

Ctrl-C or SIGTERM stops all of it; a second one stops it at once.
Exit status: 0 stopped, 1 a part failed or a port is taken, 64 wrong arguments, 78 a setting or the data directory
was refused.
`;
/** sysexits.h: EX_USAGE. */
const USAGE = 64;
const ROOT = fileURLToPath(new URL("../", import.meta.url));

const [argument] = process.argv.slice(2);
if (process.argv.includes("--help")) {
  process.stdout.write(HELP);
} else if (argument !== undefined) {
  process.stderr.write(`linkfence: unknown argument ${argument}\n\n${HELP}`);
  process.exitCode = USAGE;
} else {
  for (const step of ["bootstrap", "build"]) {
    const { status } = spawnSync("npm", ["run", "--silent", step], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) process.exit(status ?? 1);
  }
  await import(new URL("dist/start.js", import.meta.url).href);
}
