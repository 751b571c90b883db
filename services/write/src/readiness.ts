import type { Database } from "@linkfence/db";
import type { Readiness } from "@linkfence/service-shell";

/** A probe is asked every few seconds and must not wait longer than its caller does, which is a second as a rule. */
const PROBE_TIMEOUT_MS = 800;

/** Ready means that the database answers and has the schema this service writes to. */
export async function checkReadiness(db: Database): Promise<Readiness> {
  try {
    const [row] = await db.read(
      (sql) => sql<{ complete: boolean }[]>`
        SELECT to_regclass('link') IS NOT NULL AND to_regclass('api_key') IS NOT NULL
           AND to_regprocedure('revoke_links(text[], text, text)') IS NOT NULL
           AND to_regprocedure('take_idempotency_key(text, text, text, bytea, int)') IS NOT NULL
           AND to_regprocedure('touch_api_keys(text[])') IS NOT NULL
           AND to_regprocedure('owner_changes(text, bigint, bigint, int)') IS NOT NULL AS complete`,
      PROBE_TIMEOUT_MS,
    );
    return row?.complete ? { ready: true } : { ready: false, reason: "the schema is missing: run the migrations" };
  } catch {
    return { ready: false, reason: "the database does not answer" };
  }
}
