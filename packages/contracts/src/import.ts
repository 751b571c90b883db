import { type Static, Type } from "typebox";
import { Nullable, Timestamp } from "./link.ts";

/** Whose files can be read: our own, and the exports of other shorteners. */
export const IMPORT_MAPPINGS = ["linkfence", "yourls", "shlink", "kutt", "bitly"] as const;
export type ImportMapping = (typeof IMPORT_MAPPINGS)[number];

/** Media types of a file, and what it is in. */
export const IMPORT_MEDIA_TYPES = ["text/csv", "application/jsonl", "application/x-ndjson"] as const;
export type ImportFormat = "csv" | "jsonl";

/** Bytes of one line, or of one record of several lines, at the most: as much as a single creation may have. */
export const IMPORT_LINE_MAX_BYTES = 32_768;
/** Refused lines that are kept with their reason; the others are counted. */
export const IMPORT_ERRORS_KEPT = 10_000;
/** Of these, how many stand in the answer of an import itself. */
export const IMPORT_ERRORS_SHOWN = 1000;
/** Lines on a page at the most. */
export const IMPORT_PAGE_LIMIT = 1000;

export const StartImportQuery = Type.Object(
  {
    mapping: Type.Optional(Type.Enum([...IMPORT_MAPPINGS], { default: "linkfence" })),
    dryRun: Type.Optional(Type.Enum(["true", "false"], { default: "false" })),
    importId: Type.Optional(
      Type.String({ maxLength: 100, description: "an import that was broken off, to be continued with the same file" }),
    ),
  },
  { additionalProperties: false },
);
export type StartImportQuery = Static<typeof StartImportQuery>;

export const ListImportsQuery = Type.Object(
  { limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })) },
  { additionalProperties: false },
);
export type ListImportsQuery = Static<typeof ListImportsQuery>;

/** Pages are cut by line: `after` is the last line of the page before. */
export const ImportLinesQuery = Type.Object(
  {
    after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: IMPORT_PAGE_LIMIT, default: 100 })),
  },
  { additionalProperties: false },
);
export type ImportLinesQuery = Static<typeof ImportLinesQuery>;

const fields = {
  id: Type.String(),
  state: Type.Enum(["RUNNING", "INTERRUPTED", "DONE"]),
  mapping: Type.Enum([...IMPORT_MAPPINGS]),
  format: Type.Enum(["csv", "jsonl"]),
  dryRun: Type.Boolean(),
  /** Records that were read: created + already + refused. */
  lines: Type.Integer(),
  created: Type.Integer(),
  /** Lines that name an alias and a target that an earlier line of the same import created. */
  already: Type.Integer(),
  refused: Type.Integer(),
  /** Bytes up to which lines are decided. */
  bytes: Type.Integer(),
  ignoredColumns: Type.Array(Type.String()),
  startedAt: Timestamp,
  finishedAt: Nullable(Timestamp),
};

/** How far an import has come. A trial run (`dryRun`) counts as created what would be. */
export const Import = Type.Object(fields, { additionalProperties: false });
export type Import = Static<typeof Import>;

/** Why a line was refused; `line` is where its record begins in the file. */
export const ImportError = Type.Object(
  {
    line: Type.Integer(),
    field: Type.String(),
    rule: Type.String(),
    code: Type.String(),
    detail: Type.String(),
  },
  { additionalProperties: false },
);
export type ImportError = Static<typeof ImportError>;

/** What a finished import is answered: with its first refusals, and whether there are more. */
export const ImportResult = Type.Object(
  { ...fields, errors: Type.Array(ImportError), errorsTruncated: Type.Boolean() },
  { additionalProperties: false },
);
export type ImportResult = Static<typeof ImportResult>;

/** The newest imports of an owner. */
export const ImportList = Type.Object({ items: Type.Array(Import) }, { additionalProperties: false });
export type ImportList = Static<typeof ImportList>;

const page = { next: Nullable(Type.Integer({ description: "`after` of the next page" })) };

export const ImportErrorPage = Type.Object(
  { items: Type.Array(ImportError), ...page },
  { additionalProperties: false },
);
export type ImportErrorPage = Static<typeof ImportErrorPage>;

/** Which line became which link. */
export const ImportLinkPage = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        { line: Type.Integer(), code: Type.String(), shortUrl: Type.String() },
        { additionalProperties: false },
      ),
    ),
    ...page,
  },
  { additionalProperties: false },
);
export type ImportLinkPage = Static<typeof ImportLinkPage>;
