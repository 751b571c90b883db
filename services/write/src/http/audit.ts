// Who changed what: one record for each call that changed something, may have, or was not allowed to. It stands in the
// log of the service, between its other records, under the message "audit". Never a secret, a target or a body.
import { Problem } from "@linkfence/contracts";
import type { Logger } from "@linkfence/service-shell";
import type { Request, Response } from "express";
import type { Call, Method, Reply } from "./call.ts";
import { clientAddress } from "./client-address.ts";
import { authorOf } from "./guard.ts";
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
   * - `done`; `replayed` where the answer of an earlier call was given again, and nothing changed;
   * - `refused` for its key (401, 403);
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
      write(reply.headers?.["Idempotency-Replayed"] === "true" ? "replayed" : "done", whatCameOf(reply));
      return reply;
    } catch (error) {
      if (!(error instanceof Problem)) {
        if (authorOf(request)) write("failed");
      } else if (error.code === "unauthorized" || error.code === "insufficient-scope")
        write("refused", { problem: error.code });
      throw error;
    }
  };
}

/** What the path names. */
function subjectOf(request: Request): string | null {
  const names = Object.values(request.params).flat();
  return names.length === 0 ? null : names.join("/").slice(0, SUBJECT_MAX);
}

/** The status, what was created where the answer tells its place, and of a batch how many things it was about. */
function whatCameOf({ status, headers, count }: Reply): Record<string, unknown> {
  const created = headers?.Location?.split("/").at(-1)?.slice(0, SUBJECT_MAX);
  return {
    status,
    ...(created === undefined ? {} : { subject: created }),
    ...(count === undefined ? {} : { count }),
  };
}
