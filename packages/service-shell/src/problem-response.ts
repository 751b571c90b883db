// The one table from failures to HTTP. What is not a Problem is "internal": its detail goes to the log alone.
import { Problem, type ProblemBody, type ProblemCode } from "@linkfence/contracts";
import type { ErrorRequestHandler, Response } from "express";
import type { Logger } from "./logger.ts";

/** The status of each problem. */
export const PROBLEM_STATUS: Readonly<Record<ProblemCode, number>> = {
  "invalid-request": 400,
  "invalid-cursor": 400,
  unauthorized: 401,
  "insufficient-scope": 403,
  "not-found": 404,
  "method-not-allowed": 405,
  "not-acceptable": 406,
  "alias-taken": 409,
  "idempotency-key-in-use": 409,
  "key-not-usable": 409,
  "last-admin-key": 409,
  "too-many-keys": 409,
  "upload-stalled": 408,
  "import-in-use": 409,
  "import-content-differs": 422,
  "payload-too-large": 413,
  "unsupported-media-type": 415,
  "invalid-target": 422,
  "invalid-alias": 422,
  "immutable-field": 422,
  "idempotency-key-reused": 422,
  "rate-limited": 429,
  "code-space-exhausted": 503,
  overloaded: 503,
  unavailable: 503,
  "statistics-unavailable": 503,
  internal: 500,
};

/** Seconds after which another try is worth it: longer than a query's deadline, shorter than a person's patience. */
const RETRY_AFTER_SECONDS = "2";

/**
 * Renders a problem as the body of RFC 9457 section 3.1; a batch puts the same body into an item.
 * @param requestId of the request that is answered; items have none of their own, since they may be kept and sent again
 */
export function problemBody(problem: Problem, requestId?: string): ProblemBody {
  return {
    type: `urn:linkfence:problem:${problem.code}`,
    title: problem.code.replaceAll("-", " "),
    status: PROBLEM_STATUS[problem.code],
    code: problem.code,
    detail: problem.message,
    ...(requestId === undefined ? {} : { instance: `urn:linkfence:request:${requestId}` }),
    ...(problem.errors.length > 0 ? { errors: [...problem.errors] } : {}),
  };
}

/** Sends a problem with the header fields its status asks for (RFC 9110 sections 15.5.2 and 15.6.4). */
export function sendProblem(response: Response, problem: Problem): void {
  const body = problemBody(problem, requestIdOf(response));
  if (body.status === 401) response.setHeader("WWW-Authenticate", 'Bearer realm="linkfence"');
  if (body.status === 503 || problem.code === "idempotency-key-in-use" || problem.code === "import-in-use")
    response.setHeader("Retry-After", RETRY_AFTER_SECONDS);
  response.status(body.status).setHeader("Content-Type", "application/problem+json; charset=utf-8");
  response.setHeader("Cache-Control", "no-store");
  response.end(JSON.stringify(body));
}

/** The id that the service gave to the request, where it gives ids, as the answer tells it. */
function requestIdOf(response: Response): string | undefined {
  const id = response.getHeader("X-Request-Id");
  return typeof id === "string" ? id : undefined;
}

/**
 * Last handler of every Express app. `translate` turns an error into a Problem where a service knows better (database
 * errors, body parsers); what stays unknown is logged whole and answered as `internal`.
 */
export function createErrorHandler(
  logger: Logger,
  translate: (error: unknown) => Problem | undefined,
): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    if (response.writableEnded && isTooLate(error)) return;
    const problem = error instanceof Problem ? error : (translate(error) ?? bodyProblem(error));
    if (!problem) logger.error("request failed", { requestId: requestIdOf(response), method: request.method, error });
    if (!response.headersSent)
      sendProblem(response, problem ?? new Problem("internal", "the request failed; the log of the service says why"));
    // Half an answer must not look whole. One that has ended is the server's own, to a sender that took too long.
    else if (!response.writableEnded) response.destroy();
  };
}

/** A handler came with its answer when the server had given its own, to a sender that took too long or sent nonsense. */
function isTooLate(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_HTTP_HEADERS_SENT";
}

/** What Express' body parser throws, by its `type`. */
function bodyProblem(error: unknown): Problem | undefined {
  const type = typeof error === "object" && error !== null && "type" in error ? error.type : undefined;
  const status = typeof error === "object" && error !== null && "status" in error ? error.status : undefined;
  if (type === "entity.too.large")
    return refusal("payload-too-large", ["body", "maxBytes"], "the body is larger than this call accepts");
  if (type === "charset.unsupported")
    return refusal("unsupported-media-type", ["Content-Type", "charset"], "the body must be JSON in UTF-8");
  if (type === "encoding.unsupported")
    return refusal("unsupported-media-type", ["Content-Encoding", "coding"], "the body must be plain or gzip");
  if (typeof status === "number" && status >= 400 && status < 500)
    return new Problem("invalid-request", "the body or the path cannot be read: send valid JSON and a valid path");
  return undefined;
}

function refusal(code: ProblemCode, [field, rule]: readonly [string, string], detail: string): Problem {
  return new Problem(code, detail, [{ field, rule, detail }]);
}
