import type { LocalPostgresLogger } from "./options.ts";
import { programIdentity, spawnProgram } from "./run-program.ts";
import type { ServerAccount } from "./server-account.ts";

/** Shows in process lists. */
const GUARD_NAME = "linkfence-postgres-guard";

// Standard input is a pipe whose other end only this process holds, so it ends exactly when this process does, by
// kill -9 too. SIGINT asks for a fast, clean shutdown (PostgreSQL manual, 19.5).
const SCRIPT = 'while read -r _; do :; done; kill -INT "$1"';

/**
 * Keeps the server from outliving this process: it runs in a session of its own, where a Ctrl-C in the terminal does not
 * reach it, and so neither does the terminal's hang-up. Should the guard itself be killed, the next start on the data
 * directory stops the server.
 */
export function guardAgainstOrphaning(
  serverPid: number,
  account: ServerAccount | undefined,
  logger: LocalPostgresLogger,
): { release(): void } {
  const { child: guard, error: thrown } = spawnProgram("/bin/sh", ["-c", SCRIPT, GUARD_NAME, String(serverPid)], {
    ...programIdentity(account),
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const warn = (error: Error) => logger.warn(`the server will outlive a kill -9 of this process: ${error.message}`);
  if (guard === undefined) {
    warn(thrown);
    return { release: () => undefined };
  }
  guard.on("error", warn);
  guard.stdin?.on("error", () => undefined); // the guard was killed
  guard.unref();
  return {
    release() {
      guard.kill("SIGKILL");
    },
  };
}
