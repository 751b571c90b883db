// Start and stop of a process. Whatever is opened registers its own undo; they run in reverse order, once, and within
// one deadline, after which the process ends with an error rather than hang.
import closeWithGrace from "close-with-grace";
import { ConfigError } from "./config.ts";
import type { Logger } from "./logger.ts";

/** Longer than the longest request (15 s) would never be used; orchestrators kill after 30 s. */
const STOP_DEADLINE_MS = 20_000;
/** What sysexits.h calls EX_CONFIG: starting again without a change is useless. */
const EXIT_BAD_CONFIG = 78;

export type Undo = () => Promise<void> | void;

export type RunOptions = {
  /** Signals that are no wish to stop here: whoever starts this hears them. */
  without?: readonly GroupSignal[];
  /**
   * Gets what begins the stop, where the wish comes another way. Then no signal is one, and what the end of the parent means
   * is the caller's affair, too.
   */
  stopOn?: (stop: () => void) => void;
};

/** Those that a terminal or a supervisor sends to whole groups of processes. */
const GROUP_SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const;
type GroupSignal = (typeof GROUP_SIGNALS)[number];

/**
 * Runs a service until a signal or a fatal error, then undoes everything it opened and ends the process: 0 after a
 * signal, 78 for a refused configuration, 1 otherwise.
 * @param start opens things, handing the undo of each to `onStop` as soon as it is open; returns when it serves
 */
export async function runService(
  logger: Logger,
  start: (onStop: (undo: Undo) => void) => Promise<void>,
  { without = [], stopOn }: RunOptions = {},
): Promise<void> {
  const undos: Undo[] = [];
  surviveClosedOutput();
  const skip = stopOn ? [...GROUP_SIGNALS] : [...without];
  const closer = closeWithGrace({ delay: STOP_DEADLINE_MS, logger: false, skip }, async ({ err, signal }) => {
    if (err) logger.error("fatal error, stopping", { error: err, stack: err.stack });
    else logger.info("stopping", { signal });
    for (const undo of undos.reverse()) {
      try {
        await undo();
      } catch (error) {
        logger.warn("a part did not stop cleanly", { error });
      }
    }
    logger.info("stopped");
  });
  if (stopOn) stopOn(() => void closer.close());
  else stopWithParent();
  try {
    await start((undo) => undos.push(undo));
  } catch (error) {
    const isRefused = error instanceof ConfigError;
    if (isRefused) process.stderr.write(`${error.message}\n`);
    else logger.error("cannot start", { error });
    process.exitCode = isRefused ? EXIT_BAD_CONFIG : 1;
    closer.uninstall();
    for (const undo of undos.reverse()) await Promise.resolve(undo()).catch(() => {});
    process.exit();
  }
}

/** Whoever read the log may be gone, killed with the start command: a stop in good order needs no reader. */
function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** Started by the start command, a service ends when that command is gone, however it went: its channel closes then. */
function stopWithParent(): void {
  if (!process.channel) return;
  process.channel.unref();
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
}

/** Reads a configuration, or ends the process with the list of faults on standard error and status 78. */
export function configOrExit<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_BAD_CONFIG);
  }
}
