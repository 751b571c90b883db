// What a primary and its workers say to each other, over the channel that Node opens between them. It carries numbers,
// reasons and readings: no setting, and so no secret.
import type { Metrics, Readiness } from "@linkfence/service-shell";

export type Reading = Awaited<ReturnType<Metrics["read"]>>;

/** `stop`, `retire`: end in good order; who retires has a successor already. `inherit`: send what lies in a place of the spool. */
export type ToWorker =
  | { kind: "ask-readiness"; id: number }
  | { kind: "ask-metrics"; id: number }
  | { kind: "stop" }
  | { kind: "retire" }
  | { kind: "inherit"; place: number };

export type FromWorker =
  | { kind: "listening"; port: number }
  | { kind: "ready" }
  | { kind: "readiness"; id: number; readiness: Readiness }
  | { kind: "metrics"; id: number; reading: Reading }
  /** The last reading, after which nothing is counted any more. */
  | { kind: "last"; reading: Reading }
  | { kind: "inherited"; place: number };

/** Names a worker and its place in the spool to itself. */
export const WORKER_VARIABLES = { number: "LINKFENCE_WORKER", place: "LINKFENCE_WORKER_PLACE" } as const;
