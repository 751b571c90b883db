import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** A service starts within a second or two; this, below the limit of a test, only keeps a broken one from hanging its test file. */
const EVENT_TIMEOUT_MS = 50_000;

export type LogRecord = { level: string; service: string; message: string } & Record<string, unknown>;
export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type RunningProcess = {
  pid: number;
  /** Everything the process wrote, both streams, in order of arrival. */
  output(): string;
  /** The JSON records among its output so far. */
  records(): LogRecord[];
  /** Resolves with the first record, past or to come, for which `matches` holds; rejects when the process ends first. */
  logged(matches: (record: LogRecord) => boolean, timeoutMs?: number): Promise<LogRecord>;
  /** Resolves once the output contains `text`; rejects when the process ends first. */
  printed(text: string, timeoutMs?: number): Promise<void>;
  /** Resolves when the process has ended and both its streams are drained. */
  exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, then waits for the end; SIGKILL after 25 s. */
  stop(): Promise<Exit>;
};

/** What was started and has not ended. */
const running = new Set<ChildProcess>();

/** Ends every process that was started here and still runs, at once: for a run that is broken off. */
export function killStartedProcesses(): void {
  for (const child of running) child.kill("SIGKILL");
}

/**
 * Starts a Node program of the project as a process of its own.
 * @param entry path from the project's root, such as `services/write/dist/main.js`
 * @param env variables beside PATH and HOME; nothing else is inherited
 */
export function spawnProcess(entry: string, env: Record<string, string>, args: readonly string[] = []): RunningProcess {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return watchProcess(child);
}

/** Watches a process that the test has started some other way, with both its output streams piped. */
export function watchProcess(child: ChildProcess): RunningProcess {
  let output = "";
  const listeners = new Set<() => void>();
  const collect = (chunk: Buffer) => {
    output += chunk.toString("utf8");
    for (const listener of listeners) listener();
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  running.add(child);
  child.once("exit", () => running.delete(child));
  const exited = new Promise<Exit>((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
  const records = () => parseRecords(output);

  /** Resolves with what `find` first finds, in what was written already or will be. */
  function awaitOutput<T>(find: () => T | undefined, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void) => {
        listeners.delete(look);
        clearTimeout(timer);
        act();
      };
      const look = () => {
        const found = find();
        if (found !== undefined) finish(() => resolve(found));
      };
      const fail = (why: string) => finish(() => reject(new Error(`${why}; its output was:\n${output}`)));
      const timer = setTimeout(() => fail(`the expected output did not come within ${timeoutMs} ms`), timeoutMs);
      listeners.add(look);
      void exited.then(({ code, signal }) => fail(`the process ended (${code ?? signal}) before the expected output`));
      look();
    });
  }

  async function stop(): Promise<Exit> {
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), 25_000);
    const exit = await exited;
    clearTimeout(force);
    return exit;
  }

  return {
    pid: child.pid ?? -1,
    output: () => output,
    records,
    logged: (matches, timeoutMs = EVENT_TIMEOUT_MS) => awaitOutput(() => records().find(matches), timeoutMs),
    async printed(text, timeoutMs = EVENT_TIMEOUT_MS) {
      await awaitOutput(() => (output.includes(text) ? true : undefined), timeoutMs);
    },
    exited,
    kill: (signal) => void child.kill(signal),
    stop,
  };
}

function parseRecords(output: string): LogRecord[] {
  return output.split("\n").flatMap((line) => {
    if (!line.startsWith("{")) return [];
    try {
      return [JSON.parse(line) as LogRecord];
    } catch {
      return [];
    }
  });
}
