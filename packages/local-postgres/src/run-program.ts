import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import type { ServerAccount } from "./server-account.ts";

/** How a program ended. `output` is the end of stdout and stderr together; `spawnError` is why it never ran. */
export type ProgramEnd = {
  code: number | null;
  timedOut: boolean;
  output: string;
  spawnError: NodeJS.ErrnoException | undefined;
};

// Enough for everything initdb says (about 2 KB) with room for a long error.
const MAX_OUTPUT_CHARS = 16_384;

/**
 * The environment and identity every PostgreSQL program gets: no PG* variable, no locale and no secret of the caller.
 * @param account undefined: the current user
 */
export function programIdentity(account: ServerAccount | undefined): {
  env: Record<string, string>;
  uid?: number;
  gid?: number;
} {
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
  return account === undefined ? { env } : { env, uid: account.uid, gid: account.gid };
}

/** Runs a program to its end, or ends it and its children at the deadline. Never rejects. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: { account: ServerAccount | undefined; cwd: string; timeoutMs: number },
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const { child, error: thrown } = spawnProgram(file, args, {
      ...programIdentity(options.account),
      cwd: options.cwd,
      // A process group of its own, so that initdb's helper processes end with it.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    if (child === undefined) {
      resolve({ code: null, timedOut: false, output: "", spawnError: thrown });
      return;
    }
    let output = "";
    let timedOut = false;
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-MAX_OUTPUT_CHARS);
    };
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
    }, options.timeoutMs);
    const settle = (code: number | null, spawnError?: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve({ code, timedOut, output: output.trim(), spawnError });
    };
    child.on("error", (error) => settle(null, error));
    child.on("close", (code) => settle(code));
  });
}

/** Either a child, whose "error" event tells why it never ran, or the error `spawn` threw: it throws some, e.g. EPERM. */
export type Spawned = { child: ChildProcess; error?: undefined } | { child?: undefined; error: NodeJS.ErrnoException };

/** `spawn` that never throws. */
export function spawnProgram(file: string, args: readonly string[], options: SpawnOptions): Spawned {
  try {
    return { child: spawn(file, args, options) };
  } catch (error) {
    return { error: error as NodeJS.ErrnoException };
  }
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) {
      process.kill(-pid, "SIGKILL");
    }
  } catch {
    // ended in the meantime
  }
}
