// Who changed what: one record for each call that changed something, may have, or was not allowed to. It stands in the
// log of the service, between its other records, under the message "audit". Never a secret, a target or a body.
import { Problem } from "@linkfence/contracts";
import type { Logger } from "@linkfence/service-shell";
import type { Request, Response } from "express";
import type { Call, Method, Reply } from "./call.ts";
import { clientAddress } from "./client-address.ts";
import { authorOf } from "./guard.ts";
import { isFirstRefusal } from "./rate-limits.ts";
import { requestIdOf } from "./request-id.ts";

/** Calls by these methods change nothing. */
const READING: ReadonlySet<Method> = new Set(["get"]);
/** No id of this product is longer; callers may put anything into a path. */
const SUBJECT_MAX = 100;

export type Audit = ReturnType<typeof createAudit>;

/** Creates the writing of audit records. */
export function createAudit(logger: Pick<Logger, "info">) {
  /**
   * Runs one call and records how it ended:
   * - `done`; `replayed` where the answer of an earlier call was given again, and nothing changed; `interrupted` where a
   *   part was done, and then came the `problem`;
   * - `refused` for its key (401, 403), or by a limit (429): of those the first of a key or an address in each minute alone,
   *   since the log is not to grow with what the limits keep away. Metrics count them all;
   * - `failed`, with an error that nobody expected here: what it changed is unknown.
   * A call that was refused for anything else changed nothing, and has no record.
   */
  return async function record(
    { method, call }: { method: Method; call: Call },
    { request, response }: { request: Request; response: Response },
    run: () => Promise<Reply>,
  ): Promise<Reply> {
    if (READING.has(method)) return run();
    const write = (outcome: string, told: Record<string, unknown> = {}) =>
      logger.info("audit", {
        requestId: requestIdOf(response),
        operation: call.describe.operationId,
        outcome,
        owner: authorOf(request)?.owner ?? null,
        keyId: authorOf(request)?.keyId ?? null,
        address: clientAddress(request),
        subject: subjectOf(request),
        ...told,
      });
    try {
      const reply = await run();
      write(outcomeOf(reply), whatCameOf(reply));
      return reply;
    } catch (error) {
      if (!(error instanceof Problem)) {
        if (authorOf(request)) write("failed");
      } else if (isRefusal(error, request)) write("refused", { problem: error.code });
      throw error;
    }
  };
}

function isRefusal({ code }: Problem, request: Request): boolean {
  return (
    code === "unauthorized" || code === "insufficient-scope" || (code === "rate-limited" && isFirstRefusal(request))
  );
}

function outcomeOf(reply: Reply): string {
  if ("problem" in reply) return "interrupted";
  return reply.headers?.["Idempotency-Replayed"] === "true" ? "replayed" : "done";
}

/** What the path names. */
function subjectOf(request: Request): string | null {
  const names = Object.values(request.params).flat();
  return names.length === 0 ? null : names.join("/").slice(0, SUBJECT_MAX);
}

/** The status, what was made by its name, and of a batch or a file how many links it made or revoked. */
function whatCameOf(reply: Reply): Record<string, unknown> {
  const { status, headers, created = headers?.Location?.split("/").at(-1), count } = reply;
  return {
    status,
    ...(created === undefined ? {} : { created: created.slice(0, SUBJECT_MAX) }),
    ...(count === undefined ? {} : { count }),
    ...("problem" in reply ? { problem: reply.problem.code } : {}),
  };
}
