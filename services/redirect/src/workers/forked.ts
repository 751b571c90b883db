// Workers as processes, by `node:cluster`. Connections are handed out by the primary, in turns: each process gets as many as
// the others, which the kernel's own choice between them does not give; one that stands still is given one and no more, as
// the next waits for it to take the last; and one that stops listening loses none, as what it was handed goes to another.
import cluster from "node:cluster";
import type { Fork } from "./fleet.ts";
import { type FromWorker, WORKER_VARIABLES } from "./messages.ts";

/** Returns what starts a worker: this program anew, as it is on the disk by then. */
export function createForks(): Fork {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  // Readings hold numbers that JSON has not, such as the age of a log that was never read.
  cluster.setupPrimary({ serialization: "advanced" });
  const running = new Set<ReturnType<typeof cluster.fork>>();
  // However the primary ends: whoever is left has nobody to be told to stop by.
  process.on("exit", () => {
    for (const worker of running) worker.process.kill("SIGKILL");
  });
  return ({ number, place }) => {
    const worker = cluster.fork({
      [WORKER_VARIABLES.number]: String(number),
      [WORKER_VARIABLES.place]: String(place),
    });
    running.add(worker);
    // Of the channel to a process that is just ending.
    worker.on("error", () => {});
    return {
      pid: worker.process.pid ?? -1,
      exited: new Promise((resolve) => {
        const end = (code: number | null, signal: string | null) => {
          running.delete(worker);
          resolve({ code, signal });
        };
        worker.once("exit", end);
        worker.process.once("error", () => worker.process.pid === undefined && end(1, null));
      }),
      send: (message) => {
        if (worker.isConnected()) worker.send(message, () => {});
      },
      onMessage: (listener) => void worker.on("message", (message: FromWorker) => listener(message)),
      kill: () => void worker.process.kill("SIGKILL"),
    };
  };
}
