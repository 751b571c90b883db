// What each code of a problem means, for people. A code without its text does not compile.
import type { ProblemCode } from "./problem.ts";

/** Both are whole sentences: what the service found, and what the caller can do about it. */
export type ProblemText = { meaning: string; remedy: string };

export const PROBLEM_GUIDE: Readonly<Record<ProblemCode, ProblemText>> = {
  "invalid-request": {
    meaning: "A parameter, a header field or the body does not have the shape that the call takes.",
    remedy: "Mend what `errors` names; the same request will be refused again.",
  },
  unauthorized: {
    meaning: "The key is missing, malformed, unknown, expired or revoked.",
    remedy: "Send a key that is in use as `Authorization: Bearer <key>`.",
  },
  "insufficient-scope": {
    meaning: "The key does not have the scope that the call needs.",
    remedy: "Use a key with that scope, or with `admin`.",
  },
  "invalid-cursor": {
    meaning: "The cursor is not one that this listing handed out for this owner and these filters.",
    remedy: "Begin without a cursor, or pass on `next` of the page before unchanged and with the same filters.",
  },
  "not-found": {
    meaning: "There is no such thing, or it belongs to somebody else.",
    remedy: "Check the path and whose key was used.",
  },
  "method-not-allowed": {
    meaning: "The path exists, but not with this method.",
    remedy: "Use one of the methods that `Allow` names.",
  },
  "not-acceptable": {
    meaning: "The call has no answer in any form that `Accept` allows.",
    remedy: "Ask for `application/json`.",
  },
  "alias-taken": {
    meaning: "A link with this alias exists already, or existed: codes are never given out twice.",
    remedy: "Choose another alias, or none.",
  },
  "too-many-keys": {
    meaning: "The owner has as many usable keys as there may be.",
    remedy: "Revoke one that is not needed.",
  },
  "last-admin-key": {
    meaning: "It is the last usable admin key, and without it nobody could manage the installation.",
    remedy: "Make another admin key first.",
  },
  "key-not-usable": {
    meaning: "The key is revoked, expired, or replaced already, so it can have no successor.",
    remedy: "Rotate the successor that `replacedBy` names, or make a new key.",
  },
  "idempotency-key-in-use": {
    meaning: "Another request with the same key is being worked on at this moment.",
    remedy: "Repeat the same request after `Retry-After`; it will be answered as the other one.",
  },
  "idempotency-key-reused": {
    meaning: "The key belongs to an earlier request with another body.",
    remedy: "Use a new key for a new request, and repeat one byte for byte.",
  },
  "payload-too-large": {
    meaning: "The body is larger than the call takes.",
    remedy: "Send less in one request.",
  },
  "import-in-use": {
    meaning: "The same import is under way over another connection.",
    remedy: "Try again after `Retry-After`; the import shows how far it has come.",
  },
  "import-content-differs": {
    meaning: "The import has begun with a file that was another one up to where it was read.",
    remedy: "Continue with the same file, or begin a new import.",
  },
  "upload-stalled": {
    meaning: "The file came too slowly, or stopped coming; what was decided until then is kept.",
    remedy: "Send the same file again under the same key or import: it goes on behind the last line that was decided.",
  },
  "not-ready": {
    meaning:
      "The export has no file: it still waits or runs, or it failed, was cancelled, or its file is no longer kept.",
    remedy: "Look at the export's `state`; while that is `PENDING` or `RUNNING`, ask again later.",
  },
  "unsupported-media-type": {
    meaning: "The body is not in a form that the call takes.",
    remedy: "Send it uncompressed, in UTF-8, and with one of the media types that the call names.",
  },
  "invalid-target": {
    meaning: "The target is not an address that links may lead to, or is written in a way that can be misread.",
    remedy: "Mend what `errors` names.",
  },
  "invalid-alias": {
    meaning: "The alias has a character or a length that codes cannot have, or is reserved.",
    remedy: "Choose another alias, or none.",
  },
  "immutable-field": {
    meaning: "The field can never be changed: what a link means is settled when it is made.",
    remedy: "Revoke the link and create another one.",
  },
  "code-space-exhausted": {
    meaning: "Every random code that was drawn was taken.",
    remedy: "Ask for longer codes, or try again.",
  },
  "rate-limited": {
    meaning: "The key has made too many calls, or too many calls without a valid key came from the address.",
    remedy: "Go on when `Retry-After` has passed; the `RateLimit` header fields say how much is left.",
  },
  "export-finished": {
    meaning: "The export has ended: there is nothing to cancel.",
    remedy: "Look at its `state`. Its file is removed by itself when `expiresAt` has come.",
  },
  "precondition-failed": {
    meaning: "The file is another one than `If-Match` or `If-Unmodified-Since` asks for.",
    remedy: "Begin the download anew, without them.",
  },
  "range-not-satisfiable": {
    meaning: "The file has none of the bytes that `Range` asks for; `Content-Range` says how many it has.",
    remedy: "Ask for bytes that it has, or for the whole file.",
  },
  "export-queue-full": {
    meaning: "As many exports wait as there may be, of this owner or of all of them.",
    remedy: "Try again after `Retry-After`, or cancel an export that is not needed.",
  },
  overloaded: {
    meaning: "Too many requests are under way; nothing was done.",
    remedy: "Try again after `Retry-After`, with growing pauses.",
  },
  unavailable: {
    meaning: "The database did not answer, or was busy; `detail` says whether a change may have taken effect.",
    remedy: "Try again after `Retry-After`; repeat a creation with its `Idempotency-Key`.",
  },
  "statistics-unavailable": {
    meaning: "The statistics cannot be read at the moment; links and redirects are not affected.",
    remedy: "Try again after `Retry-After`.",
  },
  "exports-unavailable": {
    meaning: "Exports cannot be reached at the moment; links and redirects are not affected.",
    remedy: "Try again after `Retry-After`; repeat an order with its `Idempotency-Key`.",
  },
  internal: {
    meaning: "The service has a fault; its log says more.",
    remedy: "Report it. Trying again may help, and is safe for everything but a creation without `Idempotency-Key`.",
  },
};
