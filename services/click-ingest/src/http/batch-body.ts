import { Problem } from "@linkfence/contracts";
import { isJsonInUtf8 } from "@linkfence/service-shell";
import express, { type RequestHandler } from "express";

/**
 * 1,000 clicks of 1.75 kB: a user agent of 512 and a host of 255 characters at two bytes each, which is what a header
 * field can hold, and 200 bytes for the rest.
 */
const BODY_MAX_BYTES = 2 * 1024 * 1024;
/** Bodies in memory at once: 32 of 2 MiB. The clicks in them count against the intake only once they are read. */
const BODIES_AT_ONCE = 32;

/** Reads JSON bodies, a bounded number at a time. A request beyond it is refused before its body is read. */
export function createBodyReader() {
  const parse = express.json({ limit: BODY_MAX_BYTES, type: "application/json" });
  let reading = 0;
  let turnedAway = 0;

  const read: RequestHandler = (request, response, next) => {
    if (!isJsonInUtf8(request.get("content-type")))
      throw new Problem("unsupported-media-type", "send the batch as application/json in UTF-8");
    if (reading >= BODIES_AT_ONCE) {
      turnedAway += 1;
      throw new Problem("overloaded", "too many batches are being read already; send this one again later");
    }
    reading += 1;
    parse(request, response, (error?: unknown) => {
      reading -= 1;
      next(isNoJson(error) ? noJson() : error);
    });
  };

  return { read, stats: () => ({ reading, turnedAway }) };
}

/** What the parser throws for a text that is no JSON object or array; its other errors have their own answers. */
function isNoJson(error: unknown): boolean {
  return typeof error === "object" && error !== null && "type" in error && error.type === "entity.parse.failed";
}

function noJson(): Problem {
  const detail = "must be a JSON object";
  return new Problem("invalid-request", `the body ${detail}`, [{ field: "body", rule: "json", detail }]);
}
