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
  "alias-taken": 409,
  "idempotency-key-in-use": 409,
  "upload-stalled": 408,
  "import-in-use": 409,
  "import-content-differs": 422,
  "payload-too-large": 413,
  "unsupported-media-type": 415,
  "invalid-target": 422,
  "invalid-alias": 422,
  "immutable-field": 422,
  "idempotency-key-reused": 422,
  "code-space-exhausted": 503,
  overloaded: 503,
  unavailable: 503,
  "statistics-unavailable": 503,
  internal: 500,
};

/** Seconds after which another try is worth it: longer than a query's deadline, shorter than a person's patience. */
const RETRY_AFTER_SECONDS = "2";

/** Renders a problem as the body of RFC 9457 section 3.1; a batch puts the same body into an item. */
export function problemBody(problem: Problem): ProblemBody {
  return {
    type: `urn:linkfence:problem:${problem.code}`,
    title: problem.code.replaceAll("-", " "),
    status: PROBLEM_STATUS[problem.code],
    code: problem.code,
    detail: problem.message,
    ...(problem.errors.length > 0 ? { errors: [...problem.errors] } : {}),
  };
}

/** Sends a problem with the header fields its status asks for (RFC 9110 sections 15.5.2 and 15.6.4). */
export function sendProblem(response: Response, problem: Problem): void {
  const body = problemBody(problem);
  if (body.status === 401) response.setHeader("WWW-Authenticate", 'Bearer realm="linkfence"');
  if (body.status === 503 || problem.code === "idempotency-key-in-use" || problem.code === "import-in-use")
    response.setHeader("Retry-After", RETRY_AFTER_SECONDS);
  response.status(body.status).setHeader("Content-Type", "application/problem+json; charset=utf-8");
  response.setHeader("Cache-Control", "no-store");
  response.end(JSON.stringify(body));
}

/**
 * Last handler of every Express app. `translate` turns an error into a Problem where a service knows better (database
 * errors, body parsers); what stays unknown is logged whole and answered as `internal`.
 */
export function createErrorHandler(
  logger: Logger,
  translate: (error: unknown) => Problem | undefined,
): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const problem = error instanceof Problem ? error : (translate(error) ?? bodyProblem(error));
    if (!problem) logger.error("request failed", { method: request.method, error });
    sendProblem(response, problem ?? new Problem("internal", "the request failed; the log of the service says why"));
  };
}

/** What Express' body parser throws, by its `type`. */
function bodyProblem(error: unknown): Problem | undefined {
  const type = typeof error === "object" && error !== null && "type" in error ? error.type : undefined;
  const status = typeof error === "object" && error !== null && "status" in error ? error.status : undefined;
  if (type === "entity.too.large") return new Problem("payload-too-large", "the body is larger than this call accepts");
  if (type === "charset.unsupported" || type === "encoding.unsupported")
    return new Problem("unsupported-media-type", "the body must be UTF-8 JSON, plain or gzip");
  if (typeof status === "number" && status >= 400 && status < 500)
    return new Problem("invalid-request", "the body or the path cannot be read: send valid JSON and a valid path");
  return undefined;
}
