// The process above the workers: it forks them, hears signals, and answers on the ops port for all of them. It opens no
// database and no public port, and reads no secret.
import {
  createMetrics,
  createOpsHandler,
  type Logger,
  listen,
  type Readiness,
  type Undo,
} from "@linkfence/service-shell";
import { findLeftPlaces } from "../spool/places.ts";
import { createFleet, type Fleet } from "./fleet.ts";
import { createForks } from "./forked.ts";
import { createReadings } from "./readings.ts";

/** The ops port is bounded like that of a process that is alone. */
const OPS_CONNECTIONS = 100;
const CLOSE_MS = 1000;

export type PrimaryOptions = {
  workers: number;
  host: string;
  opsPort: number;
  /** The spool's, where there is one. */
  directory: string | null;
  logger: Logger;
};

/** Starts the workers and serves the ops port, until it is stopped. For `runService`, without SIGHUP, which is a reload here. */
export async function startPrimary(options: PrimaryOptions, onStop: (undo: Undo) => void): Promise<void> {
  const { workers: size, host, opsPort, directory, logger } = options;
  let startFailed: (error: Error) => void = fail;
  const failed = new Promise<never>((_, reject) => {
    startFailed = reject;
  });
  let isStarting = true;
  const fleet = createFleet({
    ...{ size, logger, fork: createForks(), now: () => performance.now() },
    leftPlaces: async () => (directory === null ? [] : findLeftPlaces(directory)),
    onMessage: (worker, message) => {
      if (message.kind === "listening") port = message.port;
      readings.hear(worker, message);
    },
    onEnded: (worker) => readings.forget(worker),
    onGivenUp: (error) => (isStarting ? startFailed(error) : fail(error)),
  });
  const metrics = createMetrics();
  const readings = createReadings(fleet, metrics);
  let port = 0;
  let stopping = false;

  const readiness = async (): Promise<Readiness> => {
    if (stopping) return { ready: false, reason: "it is being stopped" };
    if (!fleet.wereAllReady()) return { ready: false, reason: await readings.whyNotAll() };
    return readings.readinessOfAny();
  };
  registerFleetMetrics(metrics, fleet, readings);
  const page = { render: readings.render, contentType: metrics.contentType };
  const ops = await listen(createOpsHandler(page, readiness), { port: opsPort, host, maxConnections: OPS_CONNECTIONS });
  onStop(() => ops.close(CLOSE_MS));
  onStop(async () => {
    stopping = true;
    await fleet.stop();
  });
  process.on("SIGHUP", () => {
    // What is just starting is as new as it would be afterwards.
    if (isStarting || stopping) return;
    logger.info("reloading", { workers: size });
    void fleet.reload();
  });
  await Promise.race([fleet.start(), failed]);
  isStarting = false;
  logger.info("listening", { port, opsPort: ops.port, workers: size });
}

/** As an error that nobody catches: the service stops in good order, and its status is 1. */
function fail(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

function registerFleetMetrics(
  { counter, gauge }: ReturnType<typeof createMetrics>,
  fleet: Fleet,
  readings: ReturnType<typeof createReadings>,
): void {
  const phases = () => {
    const found = { starting: 0, listening: 0, ready: 0, stopping: 0 };
    for (const { phase } of fleet.workers()) found[phase] += 1;
    return found;
  };
  gauge("linkfence_workers", "worker processes, by what they are doing", phases, "phase");
  counter("linkfence_worker_starts_total", "worker processes started", () => fleet.counts().starts);
  counter(
    "linkfence_worker_unexpected_ends_total",
    "worker processes that ended without having been told to",
    () => fleet.counts().unexpectedEnds,
  );
  counter("linkfence_worker_kills_total", "workers that did not end in time", () => fleet.counts().killed);
  counter("linkfence_reloads_total", "reloads, by outcome", () => fleet.counts().reloads, "outcome");
  counter("linkfence_worker_unanswered_total", "questions that a worker did not answer in time", () =>
    readings.unanswered(),
  );
  gauge("linkfence_worker_silent", "1 for a worker that did not answer the last question", () => readings.silent(), [
    "worker",
  ]);
}
