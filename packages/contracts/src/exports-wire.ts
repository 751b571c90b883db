// What write asks of click-ingest about exports, and is answered. Who knows links and keys decides whose clicks may be
// ordered; who has the clicks writes the file. Each call names the owner, and sees that owner's jobs alone.
//
//   POST   /v1/exports                      ExportOrder -> 201 ExportJob; 200 with the same job where the owner used this
//                                           idempotency key before for the same order;
//                                           422 idempotency-key-reused; 429 export-queue-full; 503 exports-unavailable
//   GET    /v1/exports?owner&limit&before   200 ExportJobs, newest first; `before` is the `number` of the last one seen
//   GET    /v1/exports/{id}?owner           200 ExportJob; 404 not-found, also for another owner's and for any text
//   DELETE /v1/exports/{id}?owner           200 ExportCancellation; 404
//   GET    /v1/exports/{id}/file?owner      200, 206, 304, 412 or 416 with the bytes of the file, for Range, If-Range,
//   HEAD                                    If-None-Match and If-Match as in RFC 9110; ETag, Content-Length, Accept-Ranges
//                                           and Content-Type are those of the file. 404; 409 not-ready.
//                                           A stream that breaks ends the connection.
//
// Parameters and members that are not named here are refused (400 invalid-request).
import { type Static, Type } from "typebox";
import { EXPORT_CODES_MAX, EXPORT_FORMATS, EXPORTS_LIMIT, exportProgress } from "./exports.ts";
import { Nullable } from "./link.ts";
import { STATS_LATEST } from "./stats.ts";

/** A job's id: a random UUID in small letters. No other text is looked up. */
export const EXPORT_ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Says whether a text can be the id of an export at all. */
export function isExportId(text: string): boolean {
  return EXPORT_ID_PATTERN.test(text);
}

/** No click is counted later, as for statistics. */
export const EXPORT_LATEST_MS = Date.parse(STATS_LATEST);
const Time = Type.Integer({ minimum: 0, maximum: EXPORT_LATEST_MS });

const order = {
  owner: Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000]*$" }),
  /** Id of the key that ordered it. */
  orderedBy: Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000]*$" }),
  /** Codes of the owner's links, each once, in any order; null for all clicks that were counted for the owner. */
  codes: Nullable(
    Type.Array(Type.String({ pattern: "^[A-Za-z0-9_-]{3,32}$" }), { minItems: 1, maxItems: EXPORT_CODES_MAX }),
  ),
  /** ms since 1970; null for the first click there is. */
  from: Nullable(Time),
  /** ms since 1970, itself left out. */
  to: Time,
  format: Type.Enum([...EXPORT_FORMATS]),
  gzip: Type.Boolean(),
};

/**
 * An order. `idempotencyKey` is unquoted, of visible ASCII; `digest`, SHA-256 in hex of what the owner sent, tells whether
 * another order under it is the same.
 */
export const ExportOrder = Type.Object(
  {
    ...order,
    idempotencyKey: Nullable(Type.String({ pattern: "^[\\x21-\\x7e]{1,255}$" })),
    digest: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  },
  { additionalProperties: false },
);
export type ExportOrder = Static<typeof ExportOrder>;

/**
 * A job with all that its owner may know, and where the file lies.
 * `number` rises with every order; `place` is the path of the file below EXPORT_DIR, for a proxy that sends it itself.
 */
export const ExportJob = Type.Object(
  {
    id: Type.String(),
    number: Type.Integer({ minimum: 1 }),
    ...order,
    ...exportProgress,
    file: Nullable(
      Type.Object(
        {
          place: Type.String(),
          bytes: Type.Integer({ minimum: 0 }),
          etag: Type.String({ description: "With its quotes; of these bytes and no others" }),
          /** Time of the file for `Last-Modified` and `If-Modified-Since`, ms since 1970. */
          at: Type.Integer(),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type ExportJob = Static<typeof ExportJob>;

export const ExportJobs = Type.Object(
  { items: Type.Array(ExportJob, { maxItems: EXPORTS_LIMIT + 1 }) },
  { additionalProperties: false },
);
export type ExportJobs = Static<typeof ExportJobs>;

/** `cancelled` by this call; `already-cancelled`; or `finished`, and then nothing has changed. */
export const ExportCancellation = Type.Object(
  { outcome: Type.Enum(["cancelled", "already-cancelled", "finished"]), job: ExportJob },
  { additionalProperties: false },
);
export type ExportCancellation = Static<typeof ExportCancellation>;

/** Media types of the files. A gzipped file is one of its own: it is stored so, and no coding of the way. */
export const EXPORT_MEDIA_TYPES = {
  csv: "text/csv; charset=utf-8; header=present",
  jsonl: "application/jsonl",
  gzip: "application/gzip",
} as const;

/** Media type of the file of a job. */
export function exportMediaType({ format, gzip }: Pick<ExportJob, "format" | "gzip">): string {
  return gzip ? EXPORT_MEDIA_TYPES.gzip : EXPORT_MEDIA_TYPES[format];
}
