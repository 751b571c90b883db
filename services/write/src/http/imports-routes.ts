import {
  IMPORT_ERRORS_SHOWN,
  IMPORT_MEDIA_TYPES,
  Import,
  ImportErrorPage,
  type ImportFormat,
  ImportLinesQuery,
  ImportLinkPage,
  ImportList,
  ImportResult,
  ListImportsQuery,
  Problem,
  StartImportQuery,
} from "@linkfence/contracts";
import { isCsvInUtf8, isJsonLinesInUtf8, PROBLEM_STATUS } from "@linkfence/service-shell";
import type { Request } from "express";
import { Type } from "typebox";
import { type ImportOrder, importNotFound } from "../imports/importer.ts";
import type { Imports } from "../imports/imports.ts";
import { type ImportRow, presentRow } from "../store/import-rows.ts";
import type { ImportName, ImportStore } from "../store/imports.ts";
import { call, type Reply, type RequestField, type Routes } from "./call.ts";
import { onlyOne } from "./header-field.ts";
import { REPLAYED_FIELD, readIdempotencyKey } from "./idempotency.ts";

export type ImportRouteDeps = {
  imports: Pick<Imports, "run">;
  importStore: ImportStore;
  /** The short URL of a code. */
  shortUrlOf: (code: string) => string;
};

const GROUP = "Imports";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PAGE_SIZE = 100;
const LIST_SIZE = 20;

const KEY_FIELD: Readonly<Record<string, RequestField>> = {
  "Idempotency-Key": {
    description:
      "Names the import: the same file under the same key goes on behind the last line that was imported, and is answered as the first time when all of it was. Kept as long as the import.",
    schema: Type.String({ minLength: 1, maxLength: 255 }),
  },
};

/** The calls that import files, and tell what became of them. */
export function importRoutes({ imports, importStore, shortUrlOf }: ImportRouteDeps): Routes {
  async function present(row: ImportRow, owner: string): Promise<ImportResult> {
    const errors = await importStore.errors({ id: row.id, owner, after: 0, limit: IMPORT_ERRORS_SHOWN });
    return { ...presentRow(row, "DONE"), errors, errorsTruncated: row.refused > errors.length };
  }

  async function existing(request: Request, owner: string): Promise<Import> {
    const found = await importStore.show(idOf(request), owner);
    if (!found) throw importNotFound();
    return found;
  }

  const startImport = call({
    scope: "links:create",
    query: StartImportQuery,
    describe: {
      operationId: "importLinks",
      summary: "Import a file of links",
      description:
        "CSV (RFC 4180, with a header) or one JSON object a line, read as it comes. Each line is judged on its own; what is refused is told with its line. `dryRun=true` creates nothing and tells what would happen.",
      group: GROUP,
      fields: KEY_FIELD,
      body: { schema: Type.String({ description: "the file, in UTF-8" }), mediaTypes: IMPORT_MEDIA_TYPES },
      answers: {
        200: {
          description: "A trial run, or an import that was finished before",
          schema: ImportResult,
          headers: { Location: "Where the import can be read", ...REPLAYED_FIELD },
        },
        201: {
          description: "The file is imported",
          schema: ImportResult,
          headers: { Location: "Where the import can be read" },
        },
      },
      problems: [
        ...(["payload-too-large", "unsupported-media-type", "upload-stalled", "not-found"] as const),
        ...(["import-in-use", "import-content-differs"] as const),
      ],
    },
    async handle(request, author, query) {
      const order: ImportOrder = {
        author,
        name: nameOf(request, query),
        mapping: query.mapping ?? "linkfence",
        format: formatOf(request),
        dryRun: query.dryRun === "true",
      };
      const outcome = await imports.run(request, order);
      if (outcome.kind === "broken") return brokenOff(outcome.id, outcome.problem);
      const { row, kind } = outcome;
      return {
        status: row.dryRun || kind === "replayed" ? 200 : 201,
        count: row.dryRun ? 0 : row.created,
        body: await present(row, author.owner),
        headers: { Location: placeOf(row.id), ...(kind === "replayed" ? { "Idempotency-Replayed": "true" } : {}) },
      };
    },
  });

  const listImports = call({
    scope: "links:create",
    query: ListImportsQuery,
    describe: {
      operationId: "listImports",
      summary: "List your newest imports",
      group: GROUP,
      answers: { 200: { description: "The newest first", schema: ImportList } },
      problems: [],
    },
    async handle(_request, { owner }, { limit = LIST_SIZE }) {
      return { status: 200, body: { items: await importStore.list(owner, limit) } };
    },
  });

  const showImport = call({
    scope: "links:create",
    describe: {
      operationId: "getImport",
      summary: "Show how far an import has come",
      group: GROUP,
      answers: { 200: { description: "The import", schema: Import } },
      problems: ["not-found"],
    },
    async handle(request, { owner }) {
      return { status: 200, body: await existing(request, owner) };
    },
  });

  const listErrors = call({
    scope: "links:create",
    query: ImportLinesQuery,
    describe: {
      operationId: "listImportErrors",
      summary: "List the lines of an import that were refused",
      description: "In the order of the file. The first 10,000 are kept; `refused` of the import counts all of them.",
      group: GROUP,
      answers: { 200: { description: "One page of errors", schema: ImportErrorPage } },
      problems: ["not-found"],
    },
    async handle(request, { owner }, { after = 0, limit = PAGE_SIZE }) {
      const { id } = await existing(request, owner);
      return pageOf(await importStore.errors({ id, owner, after, limit: limit + 1 }), limit);
    },
  });

  const listLinks = call({
    scope: "links:create",
    query: ImportLinesQuery,
    describe: {
      operationId: "listImportLinks",
      summary: "List which line of an import became which link",
      description: "In the order of the file.",
      group: GROUP,
      answers: { 200: { description: "One page of lines", schema: ImportLinkPage } },
      problems: ["not-found"],
    },
    async handle(request, { owner }, { after = 0, limit = PAGE_SIZE }) {
      const { id } = await existing(request, owner);
      const rows = await importStore.links({ id, owner, after, limit: limit + 1 });
      const items = rows.map(({ line, code }) => ({ line, code, shortUrl: shortUrlOf(code) }));
      return pageOf(items, limit);
    },
  });

  return {
    "/v1/imports": { get: listImports, post: startImport },
    "/v1/imports/:id": { get: showImport },
    "/v1/imports/:id/errors": { get: listErrors },
    "/v1/imports/:id/links": { get: listLinks },
  };
}

function formatOf(request: Request): ImportFormat {
  const type = onlyOne(request, "Content-Type");
  const plain = (request.get("content-encoding") ?? "identity").toLowerCase() === "identity";
  if (plain && isCsvInUtf8(type)) return "csv";
  if (plain && isJsonLinesInUtf8(type)) return "jsonl";
  throw new Problem(
    "unsupported-media-type",
    `send the file as ${IMPORT_MEDIA_TYPES.join(" or ")}, in UTF-8 and without compression`,
  );
}

function nameOf(request: Request, { importId }: StartImportQuery): ImportName | null {
  const key = readIdempotencyKey(request);
  if (importId === undefined) return key === null ? null : { key };
  if (key !== null) {
    const detail = "cannot be combined with an Idempotency-Key: keep one of the two";
    const fault = { field: "importId", rule: "exclusive", detail };
    throw new Problem("invalid-request", `the query parameter importId ${detail}`, [fault]);
  }
  if (!UUID.test(importId)) throw importNotFound();
  return { id: importId };
}

/** What cannot be an id is not looked up. */
function idOf(request: Request): string {
  const { id } = request.params;
  if (typeof id !== "string" || !UUID.test(id)) throw importNotFound();
  return id;
}

function placeOf(id: string): string {
  return `/v1/imports/${id}`;
}

/** A problem that also says where the import is. */
function brokenOff(id: string, problem: Problem): Reply {
  // Of one that sends no more, what may still be on its way belongs to no other request (RFC 9110 section 15.5.9). Who still
  // sends is read on for a while: a connection that Node closed behind the answer would be reset before that is read (RFC 9112
  // section 9.6).
  const close = problem.code === "upload-stalled" ? { Connection: "close" } : {};
  return { status: PROBLEM_STATUS[problem.code], problem, headers: { Location: placeOf(id), ...close } };
}

/** Cuts a page out of one item more than it may have. */
function pageOf<T extends { line: number }>(items: readonly T[], limit: number): Reply {
  const page = items.slice(0, limit);
  return { status: 200, body: { items: page, next: items.length > limit ? (page.at(-1)?.line ?? null) : null } };
}
