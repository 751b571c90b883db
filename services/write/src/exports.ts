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
import { createIngestCalls, type IngestOptions } from "./ingest-calls.ts";

export type Exports = ReturnType<typeof createExports>;

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
export function createExports(options: IngestOptions) {
  const isAnswer = (error: unknown) => error instanceof Problem && PASSED_ON.has(error.code);
  const calls = createIngestCalls(options, unavailable, isAnswer);
  const base = `${calls.base}/v1/exports`;
  const [validateJob, validateJobs] = [createValidator(ExportJob), createValidator(ExportJobs)];
  const validateCancellation = createValidator(ExportCancellation);

  type Asked = { method?: "GET" | "POST" | "DELETE"; body?: string; unheard?: () => Problem };

  /** @param read takes an answer of success apart; it throws where the answer is nonsense */
  const ask = <T>(
    path: string,
    { method = "GET", body, unheard }: Asked,
    read: (answer: unknown, status: number) => T,
  ) =>
    calls.run(async () => {
      const headers = { Accept: "application/json", ...calls.authorized };
      const { status, text } = await exchange(new URL(`${base}${path}`), {
        method,
        headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(options.timeoutMs),
        maxBytes: MAX_ANSWER_BYTES,
      });
      const answer: unknown = JSON.parse(text);
      if (status >= 400) throw refusalOf(answer) ?? new Error(`click-ingest answered ${status}`);
      return read(answer, status);
    }, unheard);

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
      ask("", { method: "POST", body: JSON.stringify(order), unheard: orderUnheard }, (answer, status) => ({
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
      headers: calls.authorized,
    }),

    stats: calls.stats,
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

const AWAY = "exports cannot be reached now; links and redirects are not affected";
const unavailable = () => new Problem("exports-unavailable", AWAY);
const orderUnheard = () =>
  new Problem(
    "exports-unavailable",
    `${AWAY}. Whether the order was taken is not known: a repetition needs its Idempotency-Key`,
  );
