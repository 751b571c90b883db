/**
 * What can go wrong, as a caller may tell it apart:
 * - `unsupported-platform`: no PostgreSQL for this machine, or no account it could run as
 * - `port-in-use`: the wanted port belongs to somebody else
 * - `data-dir-in-use`: another start command, or a server it cannot stop, works on this data directory
 * - `data-dir-unusable`: not writable, not a cluster, not ours, or its password file is missing
 * - `incompatible-data`: the cluster was made by another major version of PostgreSQL
 * - `start-timeout`: the server did not become ready in time
 * - `start-failed`: everything else; the message ends with what the server itself said
 */
export type LocalPostgresErrorCode =
  | "unsupported-platform"
  | "port-in-use"
  | "data-dir-in-use"
  | "data-dir-unusable"
  | "incompatible-data"
  | "start-timeout"
  | "start-failed";

/** A refusal of the embedded server. `code` is stable; `message` says what happened and what to do about it. */
export class LocalPostgresError extends Error {
  readonly code: LocalPostgresErrorCode;

  constructor(code: LocalPostgresErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "LocalPostgresError";
    this.code = code;
  }
}

/** @returns the `code` of a failed system call (`ENOENT`, `EACCES`, ...) or query, undefined for any other error */
export function errorCode(error: unknown): string | undefined {
  const holder = typeof error === "object" && error !== null && "code" in error ? error : undefined;
  return typeof holder?.code === "string" ? holder.code : undefined;
}

/** @returns why something failed, in one sentence for an error message */
export function reasonOf(error: unknown): string {
  const holder = typeof error === "object" && error !== null && "message" in error ? error : undefined;
  return typeof holder?.message === "string" ? holder.message : String(error);
}
