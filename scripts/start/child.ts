// One service as a child process. It has a process group of its own, so that Ctrl-C in the terminal reaches the start
// command alone, which then stops its children in the right order; and a channel, whose end tells the child that the
// start command is gone.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { ServicePlan } from "./settings.ts";

/** A service reads its configuration and binds two ports: seconds at most, also on a busy machine. */
const LISTEN_TIMEOUT_MS = 30_000;
const READY_TIMEOUT_MS = 30_000;
const READY_POLL_MS = 50;
/** Services end within 20 s of a SIGTERM by themselves. */
const STOP_TIMEOUT_MS = 22_000;

export type ChildExit = { name: string; code: number | null; signal: NodeJS.Signals | null };
export type Child = ReturnType<typeof startChild>;

/**
 * Starts a service.
 * @param print gets each line that it writes
 */
export function startChild(plan: ServicePlan, env: Record<string, string>, print: (line: string) => void) {
  const child = spawn(process.execPath, [plan.entry], {
    env: { ...plan.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const exited = new Promise<ChildExit>((resolve) => {
    child.once("error", () => resolve({ name: plan.name, code: 1, signal: null }));
    child.once("close", (code, signal) => resolve({ name: plan.name, code, signal }));
  });
  const listening = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        print(line);
        if (line.includes('"message":"listening"')) resolve();
      });
    }
  });

  async function waitUntilReady(): Promise<void> {
    await within(Promise.race([listening, exited]), LISTEN_TIMEOUT_MS, `${plan.name} did not start to listen`);
    const url = `http://127.0.0.1:${plan.opsPort}/readyz`;
    const endsAt = performance.now() + READY_TIMEOUT_MS;
    let last = "";
    while (performance.now() < endsAt && child.exitCode === null && child.signalCode === null) {
      const response = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => null);
      last = response ? (await response.text()).trim() : "no answer";
      if (response?.status === 200) return;
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
    throw new Error(`${plan.name} did not become ready: ${last}`);
  }

  return {
    name: plan.name,
    exited,
    waitUntilReady,
    /** SIGTERM, then SIGKILL when it does not end in time. */
    async stop(): Promise<ChildExit> {
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      const exit = await exited;
      clearTimeout(force);
      return exit;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

async function within<T>(promise: Promise<T>, timeoutMs: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${message} within ${timeoutMs / 1000} s`)), timeoutMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
