import { randomUUID } from "node:crypto";
import type { RequestHandler, Response } from "express";

const FIELD = "X-Request-Id";
/** What may stand in logs, URNs and file names without being escaped. */
const ACCEPTED = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives each request an id, the caller's own where it is plain enough, and tells it in the answer. */
export const identifyRequests: RequestHandler = (request, response, next) => {
  const [given = ""] = request.headersDistinct[FIELD.toLowerCase()] ?? [];
  response.setHeader(FIELD, ACCEPTED.test(given) ? given : randomUUID());
  next();
};

/** The id of the request that a response answers. */
export function requestIdOf(response: Response): string {
  return String(response.getHeader(FIELD));
}
