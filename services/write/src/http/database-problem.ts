import { Problem } from "@linkfence/contracts";
import { classifyError, errorCode, PoolOverloaded } from "@linkfence/db";

/** Table or function missing (PostgreSQL manual, appendix A): the schema has not been brought up to date yet. */
const SCHEMA_MISSING = new Set(["42P01", "42883"]);

/**
 * Turns an error of the database into what a caller can do about it. Returns undefined for everything that is our own
 * fault, which is then logged and answered as internal.
 */
export function toDatabaseProblem(error: unknown): Problem | undefined {
  if (error instanceof PoolOverloaded) return new Problem("overloaded", "too many requests are under way: try again");
  if (SCHEMA_MISSING.has(errorCode(error)))
    return new Problem("unavailable", "the database is not set up yet: run the migrations, then try again");
  const kind = classifyError(error);
  if (kind === "retryable") return new Problem("unavailable", "the database was busy and nothing was done: try again");
  if (kind === "unavailable")
    return new Problem(
      "unavailable",
      "the database did not answer; whether a change took effect is unknown: look first, or repeat a creation with its Idempotency-Key",
    );
  return undefined;
}
