import { type Static, Type } from "typebox";

/** Every way a request can fail, by its stable name in the `code` member of the answer. */
export const PROBLEM_CODES = [
  "invalid-request",
  "unauthorized",
  "insufficient-scope",
  "invalid-cursor",
  "not-found",
  "method-not-allowed",
  "not-acceptable",
  "alias-taken",
  "idempotency-key-in-use",
  "idempotency-key-reused",
  "key-not-usable",
  "last-admin-key",
  "too-many-keys",
  "import-in-use",
  "import-content-differs",
  "upload-stalled",
  "not-ready",
  "export-finished",
  "precondition-failed",
  "range-not-satisfiable",
  "payload-too-large",
  "unsupported-media-type",
  "invalid-target",
  "invalid-alias",
  "immutable-field",
  "rate-limited",
  "export-queue-full",
  "code-space-exhausted",
  "overloaded",
  "unavailable",
  "statistics-unavailable",
  "exports-unavailable",
  "internal",
] as const;
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** One broken rule: which field (a JSON path such as `links[3].target`), which rule, and what to do about it. */
export const FieldFault = Type.Object(
  { field: Type.String(), rule: Type.String(), detail: Type.String() },
  { additionalProperties: false },
);
export type FieldFault = Static<typeof FieldFault>;

/** A failure as it goes out, as `application/problem+json` (RFC 9457 section 3.1). */
export const ProblemBody = Type.Object(
  {
    type: Type.String({ format: "uri" }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Enum([...PROBLEM_CODES]),
    detail: Type.String(),
    /** Names the request (section 3.1.5): `urn:linkfence:request:` and its `X-Request-Id`. Items of a batch have none. */
    instance: Type.Optional(Type.String({ format: "uri" })),
    errors: Type.Optional(Type.Array(FieldFault)),
  },
  { additionalProperties: false },
);
export type ProblemBody = Static<typeof ProblemBody>;

/**
 * A failure the caller is told about, rendered as `application/problem+json` (RFC 9457).
 * `detail` and the faults reach the caller: they carry no secret and no driver text.
 */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldFault[];

  constructor(code: ProblemCode, detail: string, errors: readonly FieldFault[] = []) {
    // An answer, and no fault of the program: where it was made is of no interest, and costs more than the answer's text.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "Problem";
    this.code = code;
    this.errors = errors;
  }
}
