// What calls answer because they are calls, and not because of what they do; the document of the API adds it to each.
import type { ProblemCode } from "@linkfence/contracts";

/** Refusals that any call may answer. */
export const EVERY_CALL_PROBLEMS: readonly ProblemCode[] = ["invalid-request", "internal"];
/** Further ones of every call that needs a key. */
export const KEYED_CALL_PROBLEMS: readonly ProblemCode[] = [
  "unauthorized",
  "insufficient-scope",
  "rate-limited",
  "overloaded",
  "unavailable",
];

/** Header fields of every answer. */
export const EVERY_ANSWER_FIELDS: Readonly<Record<string, string>> = {
  "Cache-Control": "What may keep the answer; `no-store` unless the call says otherwise",
  "X-Content-Type-Options": "`nosniff`: the media type is meant as it is written",
  "X-Request-Id": "Names the request: the caller's own id where it sent a plain one, a UUID otherwise",
};
/** Header fields of the answers to calls that need a key, where the limit that they tell of is set. */
export const KEYED_ANSWER_FIELDS: Readonly<Record<string, string>> = {
  "RateLimit-Policy":
    'The limit that the call counts on: `"key"` or, without a valid key, `"address"`; `q` calls in `w` seconds',
  RateLimit: "What is left of it: `r` calls, until it is whole again in `t` seconds",
};
