// The one place that reads driver errors. Everything above it speaks of four kinds.

/** A call did not end within its deadline. Whether it took effect is unknown. */
export class DeadlineExceeded extends Error {
  constructor(timeoutMs: number) {
    super(`the database did not answer within ${timeoutMs} ms`);
    this.name = "DeadlineExceeded";
  }
}

/** Too many calls wait for a connection already. */
export class PoolOverloaded extends Error {
  constructor(limit: number) {
    super(`${limit} database calls are under way or waiting already`);
    this.name = "PoolOverloaded";
  }
}

/**
 * - `conflict`: a unique constraint decided against the caller.
 * - `retryable`: the transaction was not carried out and may be repeated as it is (deadlock, lock timeout, serialization).
 * - `unavailable`: the server cannot be reached, is starting, stopping, full or too slow; the outcome may be unknown.
 * - `fatal`: the statement itself is wrong or its data cannot be stored; repeating it cannot help.
 */
export type ErrorKind = "conflict" | "retryable" | "unavailable" | "fatal";

/** SQLSTATEs (PostgreSQL manual, appendix A) that say "again, unchanged". */
const RETRYABLE = new Set(["40001", "40P01", "55P03"]);
/**
 * Whole classes that say "not now": 08 connection, 53 resources, 57 intervention, 58 system; 25006: read-only; 55000: a
 * standby.
 */
const UNAVAILABLE_CLASSES = new Set(["08", "53", "57", "58"]);
const UNAVAILABLE = new Set(["25006", "25P03", "55000", "28000", "28P01", "3D000"]);
/** What the driver and the socket say instead of an SQLSTATE. */
const CONNECTION = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Tells the kind of an error thrown by a database call. Takes anything; what it does not know is `fatal`. */
export function classifyError(error: unknown): ErrorKind {
  if (error instanceof DeadlineExceeded || error instanceof PoolOverloaded) return "unavailable";
  const code = errorCode(error);
  if (code === "23505") return "conflict";
  if (RETRYABLE.has(code)) return "retryable";
  if (CONNECTION.has(code) || UNAVAILABLE.has(code) || UNAVAILABLE_CLASSES.has(code.slice(0, 2))) return "unavailable";
  return isQueueFull(error) ? "unavailable" : "fatal";
}

/**
 * The server has no room for another notification. A row too wide for its index has the same code (54000); the word, a
 * statement's, stands in every translation of the message.
 */
function isQueueFull(error: unknown): boolean {
  return errorCode(error) === "54000" && error instanceof Error && error.message.includes("NOTIFY");
}

/** The connection ended under a statement (class 57P0x: the server ended it), which says nothing against a new one. */
export function isConnectionLoss(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code.startsWith("57P0") || code === "CONNECTION_CLOSED" || code === "CONNECTION_DESTROYED" || code === "ECONNRESET"
  );
}

/**
 * Says whether a statement failed without having reached the server. When the server ends a connection under a statement,
 * the driver rejects that one as closed, and then rejects the first statement of the next connection, unsent, with the
 * FATAL message that the server had left behind. No statement that was sent is ever rejected with that message.
 */
export function wasNeverSent(error: unknown): boolean {
  const fatal = typeof error === "object" && error !== null && "severity" in error && error.severity === "FATAL";
  return fatal && ["57P01", "57P02", "57P05"].includes(errorCode(error));
}

/**
 * Says whether the server was told to end the statement (57014). Who did not give it up itself met a cancel that was meant
 * for the statement before it on its connection, and came late.
 */
export function wasCancelled(error: unknown): boolean {
  return errorCode(error) === "57014";
}

/** Says whether an error came from the server, which sends a severity with each (PostgreSQL manual, section 55.8). */
export function isServerError(error: unknown): boolean {
  return typeof error === "object" && error !== null && "severity" in error;
}

/** The SQLSTATE or the driver's code of an error, or an empty text. */
export function errorCode(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  return "";
}
