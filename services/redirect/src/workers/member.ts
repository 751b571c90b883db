// A worker's side: how it hears from its primary, and what it tells it. Whatever becomes of the primary, the worker ends in
// good order.
import cluster from "node:cluster";
import type { Metrics, Readiness } from "@linkfence/service-shell";
import { type FromWorker, type ToWorker, WORKER_VARIABLES } from "./messages.ts";

/** How often a worker that starts looks whether it is ready. */
const LOOK_EVERY_MS = 50;
/** Signals of one wish, as from a supervisor that tells every process of a group and a primary that passes it on. */
const ONE_WISH_MS = 1000;
/** A primary that takes no message for so long is gone, or as good as gone. */
const SEND_MS = 500;

type Served = { metrics: Metrics; readiness: () => Readiness };
export type Member = ReturnType<typeof createMember>;

/** The worker that this process is; null where it is none, or one of somebody else's cluster. */
export function joinPrimary(env: NodeJS.ProcessEnv): Member | null {
  return cluster.isWorker && env[WORKER_VARIABLES.number] !== undefined ? createMember(env) : null;
}

function createMember(env: NodeJS.ProcessEnv) {
  const number = Number(env[WORKER_VARIABLES.number]);
  const place = Number(env[WORKER_VARIABLES.place]);
  let served: Served | null = null;
  let retiring = false;
  let askedAt: number | null = null;
  let begin = () => {};
  let inherit = async (_place: number) => {};

  /** Never rejects: where nobody listens, nothing can be told. */
  const tell = (message: FromWorker) =>
    new Promise<void>((resolve) => {
      if (!process.connected) return resolve();
      const timer = setTimeout(resolve, SEND_MS);
      process.send?.(message, undefined, {}, () => {
        clearTimeout(timer);
        resolve();
      });
    });

  function stop(): void {
    if (askedAt !== null) return;
    askedAt = performance.now();
    begin();
  }

  async function answer(message: ToWorker): Promise<void> {
    if (message.kind === "stop") stop();
    else if (message.kind === "retire") {
      retiring = askedAt === null;
      stop();
    } else if (message.kind === "inherit") {
      await inherit(message.place);
      await tell({ kind: "inherited", place: message.place });
    } else if (served !== null) {
      const { id } = message;
      if (message.kind === "ask-readiness") await tell({ kind: "readiness", id, readiness: served.readiness() });
      else await tell({ kind: "metrics", id, reading: await served.metrics.read() });
    }
  }

  return {
    /** Counted from 1; a successor has its predecessor's. */
    number,
    /** Its place in the spool, which no other worker has at the time. */
    place,
    /** Its primary has put another one into its place already, and nobody waits for this one to be seen as stopping. */
    isRetiring: () => retiring,
    /** For `runService`. Signals to the whole group are the primary's to hear, which passes on what concerns its workers. */
    stopOn(start: () => void): void {
      begin = start;
      for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT"] as const) process.on(signal, () => {});
      process.on("SIGTERM", () => {
        if (askedAt !== null && performance.now() - askedAt > ONE_WISH_MS) process.exit(1);
        stop();
      });
      cluster.worker?.on("disconnect", () => {
        // Else Node ends this process at once, with what it has under way.
        if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
        stop();
      });
      process.on("message", (message: ToWorker) => void answer(message).catch(() => {}));
    },
    /** @param take told of each place whose clicks this process is to send; resolves when that is done */
    onInherit(take: (place: number) => Promise<void>): void {
      inherit = take;
    },
    /** Says that it listens, and then, once, that it is ready; and tells from now on what it is asked. */
    async serve(port: number, what: Served): Promise<void> {
      served = what;
      await tell({ kind: "listening", port });
      const timer = setInterval(() => {
        if (!what.readiness().ready) return;
        clearInterval(timer);
        void tell({ kind: "ready" });
      }, LOOK_EVERY_MS);
      timer.unref();
    },
    /** Tells what was counted until the end. */
    async sayLast(): Promise<void> {
      if (served) await tell({ kind: "last", reading: await served.metrics.read() });
    },
  };
}
