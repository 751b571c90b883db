import { type Static, Type } from "typebox";
import { Nullable, Timestamp } from "./link.ts";

/** Codes that one export names at the most; who wants more orders all of them. */
export const EXPORT_CODES_MAX = 1000;
/** Exports on a page at the most. */
export const EXPORTS_LIMIT = 100;

/** CSV is for spreadsheets, and alters cells that those would run; JSON Lines holds every value as it is kept. */
export const EXPORT_FORMATS = ["csv", "jsonl"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** `PENDING -> RUNNING -> SUCCEEDED | FAILED | CANCELLED`; an attempt that failed and may be repeated goes back to `PENDING`. */
export const EXPORT_STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type ExportState = (typeof EXPORT_STATES)[number];

/** Says whether an export has ended: it never changes any more. */
export function hasEnded({ state }: { state: ExportState }): boolean {
  return state !== "PENDING" && state !== "RUNNING";
}

/** What ended the last attempt. The first two end the job, the others only when there is no attempt left. */
export const EXPORT_FAULTS = [
  "too-many-rows",
  "internal",
  "storage-full",
  "storage",
  "database",
  "deadline",
  "worker-lost",
] as const;
export type ExportFault = (typeof EXPORT_FAULTS)[number];

/** Columns of a file, in the order of CSV; the names are the members of a line in JSON Lines. */
export const EXPORT_COLUMNS = [
  "id",
  "clickedAt",
  "code",
  "version",
  "referrer",
  "browser",
  "system",
  "device",
  "country",
  "bot",
  "prefetch",
] as const;

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** An order of a file with the clicks of a period. What the texts mean is decided by the domain rules. */
export const StartExportRequest = Type.Object(
  {
    codes: Type.Optional(
      Nullable(
        Type.Array(Type.String({ maxLength: 1024 }), {
          minItems: 1,
          maxItems: EXPORT_CODES_MAX,
          description: "Links whose clicks are wanted; the clicks of all the owner's links by default",
        }),
      ),
    ),
    from: Type.Optional(
      Nullable(
        Type.String({ maxLength: 64, description: "A time (RFC 3339) of 1970 to 2099; the first click by default" }),
      ),
    ),
    to: Type.Optional(
      Nullable(Type.String({ maxLength: 64, description: "A time (RFC 3339), itself left out; now by default" })),
    ),
    format: Type.Optional(Nullable(Type.Enum([...EXPORT_FORMATS], { default: "csv" }))),
    gzip: Type.Optional(Nullable(Type.Boolean({ default: false }))),
  },
  { additionalProperties: false },
);
export type StartExportRequest = Static<typeof StartExportRequest>;

/** What an export was ordered for. None of it ever changes. */
const order = {
  format: Type.Enum([...EXPORT_FORMATS]),
  gzip: Type.Boolean(),
};

/** What is known of an export while it waits, runs, and afterwards. */
export const exportProgress = {
  state: Type.Enum([...EXPORT_STATES]),
  attempts: Type.Integer({ minimum: 0, description: "Attempts begun; there are three at the most" }),
  rows: Type.Integer({
    minimum: 0,
    description: "Clicks in the file; while it is written, those of this attempt so far",
  }),
  rowsEstimated: Nullable(
    Type.Integer({
      minimum: 0,
      description:
        "By whole hours, so that it may be too high; null until the first look, and at the end what it came to",
    }),
  ),
  bytes: Count,
  error: Nullable(
    Type.Object(
      {
        code: Type.Enum([...EXPORT_FAULTS], {
          description:
            "`too-many-rows`: order shorter periods. `storage-full`, `storage`: the operator makes room, or looks at the directory. `deadline`: order a shorter period. `database`, `worker-lost`: order it again. `internal`: the operator looks at the log",
        }),
        detail: Type.String(),
        at: Timestamp,
      },
      { additionalProperties: false, description: "What ended the last attempt that failed" },
    ),
  ),
  createdAt: Timestamp,
  startedAt: Nullable(Type.String({ format: "date-time", description: "Of the last attempt" })),
  finishedAt: Nullable(Timestamp),
  expiresAt: Nullable(
    Type.String({ format: "date-time", description: "When the file and the export itself are removed" }),
  ),
};

/** An export as its owner sees it. */
export const Export = Type.Object(
  {
    id: Type.String(),
    codes: Nullable(Type.Array(Type.String(), { maxItems: EXPORT_CODES_MAX })),
    from: Nullable(Timestamp),
    to: Timestamp,
    ...order,
    ...exportProgress,
    download: Nullable(Type.String({ description: "Path of the file, once there is one" })),
  },
  { additionalProperties: false },
);
export type Export = Static<typeof Export>;

/** Newest first; `next` is the cursor of the page behind it, and null at the end. */
export const ExportPage = Type.Object(
  { items: Type.Array(Export), next: Nullable(Type.String()) },
  { additionalProperties: false },
);
export type ExportPage = Static<typeof ExportPage>;

export const ListExportsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: EXPORTS_LIMIT, default: 20 })),
    after: Type.Optional(Type.String({ description: "`next` of the page before" })),
  },
  { additionalProperties: false },
);
export type ListExportsQuery = Static<typeof ListExportsQuery>;
