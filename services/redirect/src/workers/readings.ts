// Asks the workers what they have to tell, each within a deadline, and makes one answer of it.
import type { Metrics, Readiness } from "@linkfence/service-shell";
import type { Fleet, WorkerProcess } from "./fleet.ts";
import { addEnded, countedOf, type Part, renderParts } from "./merge-metrics.ts";
import type { FromWorker, Reading } from "./messages.ts";

/** A worker answers within milliseconds. Who reads metrics waits for ten seconds as a rule, a load balancer for one or two. */
const METRICS_MS = 1000;
const READINESS_MS = 500;

type Answer = Extract<FromWorker, { kind: "readiness" | "metrics" }>;

/** @param own what the primary tells of itself */
export function createReadings(fleet: Pick<Fleet, "workers" | "nameOf">, own: Metrics) {
  const asked = new Map<number, (answer: Answer) => void>();
  const last = new Map<WorkerProcess, Reading>();
  const silent = new Set<WorkerProcess>();
  let ids = 0;
  let unanswered = 0;
  let ended: Promise<Reading> = Promise.resolve([]);

  /** Resolves with null when it does not answer in time. */
  function ask(worker: WorkerProcess, what: "readiness" | "metrics", timeoutMs: number): Promise<Answer | null> {
    const id = ++ids;
    return new Promise((resolve) => {
      const finish = (answer: Answer | null) => {
        clearTimeout(timer);
        asked.delete(id);
        if (answer) silent.delete(worker);
        else if (fleet.workers().includes(worker)) {
          unanswered += 1;
          silent.add(worker);
        }
        resolve(answer);
      };
      const timer = setTimeout(() => finish(null), timeoutMs);
      asked.set(id, finish);
      worker.process.send({ kind: `ask-${what}`, id });
    });
  }

  const listening = () => fleet.workers().filter(({ phase }) => phase !== "starting");

  async function readinessOf(worker: WorkerProcess): Promise<Readiness> {
    const answer = await ask(worker, "readiness", READINESS_MS);
    if (answer?.kind === "readiness") return answer.readiness;
    return { ready: false, reason: "it does not answer" };
  }

  return {
    hear(worker: WorkerProcess, message: FromWorker): void {
      if (message.kind === "last" || message.kind === "metrics") last.set(worker, message.reading);
      if (message.kind === "readiness" || message.kind === "metrics") asked.get(message.id)?.(message);
    },
    /** What a worker that ended has counted counts on. */
    forget(worker: WorkerProcess): void {
      const reading = last.get(worker);
      last.delete(worker);
      silent.delete(worker);
      if (reading) ended = ended.then((former) => addEnded(former, reading).catch(() => former));
    },
    /** Ready where any worker is. */
    async readinessOfAny(): Promise<Readiness> {
      const serving = listening().filter(({ phase }) => phase !== "stopping");
      const answers = serving.map(async (worker) => {
        const answer = await readinessOf(worker);
        if (!answer.ready) throw new Error(`worker ${fleet.nameOf(worker)}: ${answer.reason}`);
        return answer;
      });
      return Promise.any(answers).catch(({ errors = [] }: AggregateError) => ({
        ready: false,
        reason: errors.length === 0 ? "no worker listens" : errors.map(({ message }) => message).join("; "),
      }));
    },
    /** Which workers have not been ready so far, and why. */
    async whyNotAll(): Promise<string> {
      const waited = fleet.workers().filter(({ wasReady }) => !wasReady);
      const reasons = waited.map(async (worker) => {
        const { reason = "starting" } = worker.phase === "starting" ? {} : await readinessOf(worker);
        return `worker ${fleet.nameOf(worker)}: ${reason}`;
      });
      return (await Promise.all(reasons)).join("; ") || "workers start";
    },
    /** One page of all of them, and of the primary. What a worker counted when it last answered stands for one that does not. */
    async render(): Promise<string> {
      const answers = await Promise.all(
        listening().map(async (worker) => ({ worker, answer: await ask(worker, "metrics", METRICS_MS) })),
      );
      const fresh = new Set(answers.filter(({ answer }) => answer !== null).map(({ worker }) => worker));
      const ownReading = await own.read();
      let endedReading: Reading;
      let read: typeof ended;
      do {
        read = ended;
        endedReading = await read;
      } while (read !== ended);
      // In one turn from here on: who ends now is not told of twice.
      const parts: Part[] = [...last].map(([worker, reading]) => ({
        worker: fleet.nameOf(worker),
        reading: fresh.has(worker) ? reading : countedOf(reading),
      }));
      return renderParts([{ worker: "primary", reading: ownReading }, ...parts], endedReading);
    },
    unanswered: () => unanswered,
    silent: () =>
      listening().map((worker) => ({ labels: { worker: fleet.nameOf(worker) }, value: silent.has(worker) ? 1 : 0 })),
  };
}
