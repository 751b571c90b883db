/** Every way a request can fail, by its stable name in the `code` member of the answer. */
export type ProblemCode =
  | "invalid-request"
  | "unauthorized"
  | "insufficient-scope"
  | "invalid-cursor"
  | "not-found"
  | "method-not-allowed"
  | "alias-taken"
  | "idempotency-key-in-use"
  | "idempotency-key-reused"
  | "payload-too-large"
  | "unsupported-media-type"
  | "invalid-target"
  | "invalid-alias"
  | "immutable-field"
  | "code-space-exhausted"
  | "overloaded"
  | "unavailable"
  | "statistics-unavailable"
  | "internal";

/** One broken rule: which field (a JSON path such as `links[3].target`), which rule, and what to do about it. */
export type FieldFault = { field: string; rule: string; detail: string };

/**
 * A failure the caller is told about, rendered as `application/problem+json` (RFC 9457).
 * `detail` and the faults reach the caller: they carry no secret and no driver text.
 */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldFault[];

  constructor(code: ProblemCode, detail: string, errors: readonly FieldFault[] = []) {
    super(detail);
    this.name = "Problem";
    this.code = code;
    this.errors = errors;
  }
}
