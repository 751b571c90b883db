// Asks click-ingest for exports, which writes and keeps their files. Whatever is wrong over there ends here as one failure
// of these calls.
import { createHash } from "node:crypto";
import {
  ExportCancellation,
  ExportJob,
  ExportJobs,
  type ExportOrder,
  Problem,
  type ProblemCode,
} from "@linkfence/contracts";
import { createValidator, exchange } from "@linkfence/service-shell";

export type ExportsOptions = {
  /** URL of click-ingest. */
  baseUrl: string;
  /** What click-ingest wants to know of its callers, if anything. */
  secret?: string | undefined;
  /** Deadline of a whole exchange in ms; downloads have others. */
  timeoutMs: number;
  /** Told the cause when calls begin to fail, and undefined when they succeed again. */
  onChange?: (cause: unknown) => void;
};
export type Exports = ReturnType<typeof createExports>;

/** Calls to a hung ingest at a time; the next ones are refused at once. */
const MAX_CONCURRENT = 32;
/** A hundred exports with a thousand codes of 32 characters each. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** What click-ingest says of the request itself. */
const PASSED_ON: ReadonlySet<string> = new Set<ProblemCode>([
  "not-found",
  "not-ready",
  "idempotency-key-reused",
  "export-queue-full",
]);

/** Creates the desk of exports. All of it rejects with a Problem. */
export function createExports({ baseUrl, secret, timeoutMs, onChange = () => {} }: ExportsOptions) {
  const base = `${baseUrl.replace(/\/+$/, "")}/v1/exports`;
  const authorized: Record<string, string> = secret === undefined ? {} : { Authorization: `Bearer ${secret}` };
  const [validateJob, validateJobs] = [createValidator(ExportJob), createValidator(ExportJobs)];
  const validateCancellation = createValidator(ExportCancellation);
  const counts = { underWay: 0, failures: 0 };
  let failing = false;

  /** A failing ingest is told once, however often it is asked. */
  function note(cause: unknown): void {
    if (failing !== (cause !== undefined)) onChange(cause);
    failing = cause !== undefined;
  }

  type Asked = { method?: "GET" | "POST" | "DELETE"; body?: string };

  /** @param read takes an answer of success apart; it throws where the answer is nonsense */
  async function ask<T>(path: string, { method = "GET", body }: Asked, read: (answer: unknown, status: number) => T) {
    if (counts.underWay >= MAX_CONCURRENT) throw unavailable();
    counts.underWay += 1;
    try {
      const headers = { Accept: "application/json", ...authorized };
      const { status, text } = await exchange(new URL(`${base}${path}`), {
        method,
        headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(timeoutMs),
        maxBytes: MAX_ANSWER_BYTES,
      });
      const answer: unknown = JSON.parse(text);
      if (status >= 400) throw refusalOf(answer) ?? new Error(`click-ingest answered ${status}`);
      const found = read(answer, status);
      note(undefined);
      return found;
    } catch (error) {
      if (error instanceof Problem && PASSED_ON.has(error.code)) {
        note(undefined);
        throw error;
      }
      counts.failures += 1;
      note(error);
      throw unavailable();
    } finally {
      counts.underWay -= 1;
    }
  }

  /** A job of another owner is a fault over there, and no answer here. */
  function jobOf(answer: unknown, owner: string): ExportJob {
    const job = validateJob(answer);
    if (job.owner !== owner) throw new Error("click-ingest answered with another owner's export");
    return job;
  }

  const ownedBy = (owner: string, more: Record<string, string> = {}) => `?${new URLSearchParams({ owner, ...more })}`;

  return {
    /** Orders an export. Rejects with `idempotency-key-reused`, `export-queue-full` or `exports-unavailable`. */
    order: (order: ExportOrder): Promise<{ job: ExportJob; replayed: boolean }> =>
      ask("", { method: "POST", body: JSON.stringify(order) }, (answer, status) => ({
        job: jobOf(answer, order.owner),
        replayed: status === 200,
      })),

    /** An owner's exports, newest first: those ordered before the one with that number, if any. */
    list: (owner: string, limit: number, before: number | null): Promise<ExportJob[]> =>
      ask(
        ownedBy(owner, { limit: String(limit), ...(before === null ? {} : { before: String(before) }) }),
        {},
        (answer) => validateJobs(answer).items.map((item) => jobOf(item, owner)),
      ),

    /** Rejects with `not-found` or `exports-unavailable`. */
    find: (owner: string, id: string): Promise<ExportJob> =>
      ask(`/${id}${ownedBy(owner)}`, {}, (answer) => jobOf(answer, owner)),

    /** Rejects as `find`. */
    cancel: (owner: string, id: string): Promise<ExportCancellation> =>
      ask(`/${id}${ownedBy(owner)}`, { method: "DELETE" }, (answer) => {
        const cancelled = validateCancellation(answer);
        jobOf(cancelled.job, owner);
        return cancelled;
      }),

    /** Where the bytes of a file are asked for, and what shows that this service may. */
    fileOf: ({ id, owner }: ExportJob) => ({
      url: new URL(`${base}/${id}/file${ownedBy(owner)}`),
      headers: authorized,
    }),

    stats: () => ({ ...counts }),
  };
}

/** SHA-256 in hex of what an owner sent. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** What click-ingest says of the request, where that is what its answer is. */
function refusalOf(answer: unknown): Problem | undefined {
  if (typeof answer !== "object" || answer === null || !("code" in answer) || !("detail" in answer)) return undefined;
  const { code, detail } = answer;
  if (typeof code !== "string" || !PASSED_ON.has(code) || typeof detail !== "string") return undefined;
  const fault = {
    field: "Idempotency-Key",
    rule: "reused",
    detail: "was sent with another body before: use a new key",
  };
  if (code === "idempotency-key-reused") return new Problem(code, `the Idempotency-Key ${fault.detail}`, [fault]);
  if (code === "not-found") return new Problem(code, "you have no such export");
  return new Problem(code as ProblemCode, detail);
}

function unavailable(): Problem {
  return new Problem(
    "exports-unavailable",
    "exports cannot be reached now; links, redirects and statistics are not affected",
  );
}
