// A service's process that is stopped, killed and started again, always at the same address.
import { type RunningService, type ServiceName, startService } from "@linkfence/testkit";

export type Actor = Awaited<ReturnType<typeof startActor>>;

/**
 * Starts it and waits until it listens.
 * @param env has its PORT
 * @param onLoss told what it ended with, where nobody ended it
 */
export async function startActor(name: ServiceName, env: Record<string, string>, onLoss: (exit: string) => void) {
  let service = await start();
  let stopped = false;
  let ended = false;

  async function start(): Promise<RunningService> {
    const started = await startService(name, env, START_MS);
    wanted.add(started.pid);
    void started.exited.then(({ code, signal }) => {
      if (wanted.has(started.pid)) onLoss(`${code ?? signal}\n${started.output().slice(-SHOWN)}`);
    });
    return started;
  }

  function resume(): void {
    if (stopped) service.kill("SIGCONT");
    stopped = false;
  }

  async function leave(how: () => unknown): Promise<void> {
    wanted.delete(service.pid);
    await how();
    await service.exited;
  }

  return {
    url: service.url,
    service: () => service,
    /** Stops it where it stands: its sockets stay open, and nobody answers. */
    pause(): void {
      stopped = true;
      service.kill("SIGSTOP");
    },
    resume,
    kill: () => leave(() => service.kill("SIGKILL")),
    /** As an orchestrator does. */
    stop: () => leave(() => service.stop()),
    /** After `kill` or `stop`. */
    async start(): Promise<void> {
      if (!ended) service = await start();
    },
    /** For good, whatever state it is in. */
    async end(): Promise<void> {
      ended = true;
      resume();
      await leave(() => service.stop());
    },
  };
}

/** Process ids that nobody has ended on purpose. */
const wanted = new Set<number>();
/** A start takes a second, and on a machine with a load of twenty sixty times as long. */
const START_MS = 120_000;
/** The end of what a process printed says what it died of. */
const SHOWN = 2000;
