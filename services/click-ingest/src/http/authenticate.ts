import { createHash, timingSafeEqual } from "node:crypto";
import { Problem } from "@linkfence/contracts";
import type { RequestHandler } from "express";

/** `Bearer` and a token (RFC 6750 section 2.1); the scheme's letter case does not matter (RFC 9110 section 11.1). */
const CREDENTIALS = /^bearer +([^ ]+) *$/i;

/**
 * Lets through whoever knows the secret that this service shares with its callers; everybody where there is none. What is
 * compared is of one length and in constant time, so that an answer's time tells nothing.
 */
export function createAuthentication(secret: string | undefined) {
  const expected = secret === undefined ? undefined : digest(secret);
  let refused = 0;

  const check: RequestHandler = (request, _response, next) => {
    const token = CREDENTIALS.exec(request.get("authorization") ?? "")?.[1] ?? "";
    if (expected === undefined || timingSafeEqual(digest(token), expected)) {
      next();
      return;
    }
    refused += 1;
    throw new Problem("unauthorized", "send the secret of CLICK_INGEST_SECRET as Authorization: Bearer <secret>");
  };

  return { check, stats: () => ({ refused }) };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
