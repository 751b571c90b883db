import {
  EXPORT_COLUMNS,
  EXPORT_MEDIA_TYPES,
  Export,
  type ExportJob,
  ExportPage,
  exportMediaType,
  isExportId,
  ListExportsQuery,
  Problem,
  StartExportRequest,
} from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import { create as createDisposition } from "content-disposition";
import type { Request, Response } from "express";
import { Type } from "typebox";
import { nameExport } from "../domain/export-name.ts";
import { decideExport } from "../domain/export-order.ts";
import { digestOf, type Exports } from "../exports.ts";
import type { ExportListing } from "../store/export-listing.ts";
import type { LinkStore } from "../store/links.ts";
import type { Caller } from "./auth.ts";
import { call, type Routes } from "./call.ts";
import { clientAddress } from "./client-address.ts";
import type { Downloads, Sent } from "./download.ts";
import { IDEMPOTENCY_FIELDS, REPLAYED_FIELD, readIdempotencyKey } from "./idempotency.ts";
import { BODY_PROBLEMS, JSON_TYPE, readJsonBody } from "./json-body.ts";
import { PAGE_FIELDS, replyWithPage } from "./page-reply.ts";
import { requestIdOf } from "./request-id.ts";

export type ExportRouteDeps = {
  links: Pick<LinkStore, "findOwn">;
  exports: Exports;
  exportListing: ExportListing;
  downloads: Downloads;
  /** Path under which a proxy in front sends the files itself; by default this service sends them. */
  accelPrefix: string | undefined;
  logger: { info: (message: string, fields: Record<string, unknown>) => void };
  /** ms since 1970. */
  now: () => number;
};

const GROUP = "Exports";
/** A thousand texts of the greatest length that the schema lets pass have 1 MB. */
export const EXPORT_BODY_LIMIT = 1024 * 1024;
const PAGE_DEFAULT = 20;

const START =
  `Answers at once, with where the export can be read; it is written meanwhile. It has the clicks that are stored
when it begins, bots and prefetches among them, of all your links or of those that are named. \`to\` is left out of the
period, and now by default. CSV is for spreadsheets: a cell that one could take for a formula begins with an apostrophe
there. JSON Lines has every value as it is kept. With an \`Idempotency-Key\` the same order is one export for as long as that
is kept.`.replaceAll("\n", " ");
const COLUMNS = EXPORT_COLUMNS.map((name) => `\`${name}\``).join(", ");
const DOWNLOAD =
  `Once the export has \`SUCCEEDED\`. Parts can be asked for (\`Range\`, \`If-Range\`), so that a download that
broke off goes on where it ended; several ranges at once are answered with the whole file. CSV
has a header; the columns, and the members of a line of JSON Lines, are ${COLUMNS}. HEAD tells the same fields without
the file.`.replaceAll("\n", " ");
/** What somebody can do who wants a file of it. */
const WITHOUT_FILE: Readonly<Record<ExportJob["state"], string>> = {
  PENDING: "wait until it has SUCCEEDED",
  RUNNING: "wait until it has SUCCEEDED",
  SUCCEEDED: "and its file was removed: order it again",
  FAILED: "its error says why: order it again",
  CANCELLED: "order it again",
};
const FILE_FIELDS = {
  "Content-Disposition": "The name under which to keep it (RFC 6266)",
  ETag: "Of these bytes and no others",
  "Accept-Ranges": "`bytes`",
};
const FORMS = Object.fromEntries(
  Object.values(EXPORT_MEDIA_TYPES).map((type) => [type.split(";", 1)[0] ?? type, Type.String()]),
);

/** The calls that order exports, tell of them and hand them out. */
export function exportRoutes(deps: ExportRouteDeps): Routes {
  const { links, exports, exportListing, now } = deps;
  const validate = createValidator(StartExportRequest);

  const startExport = call({
    scope: "exports",
    describe: {
      operationId: "startExport",
      summary: "Order a file with the clicks of a period",
      description: START,
      group: GROUP,
      fields: {
        "Idempotency-Key": {
          ...IDEMPOTENCY_FIELDS["Idempotency-Key"],
          description:
            "Makes the call repeatable: the same key with the same body is the same export. Kept as long as the export.",
        } as (typeof IDEMPOTENCY_FIELDS)[string],
      },
      body: { schema: StartExportRequest, mediaTypes: JSON_TYPE },
      answers: {
        202: {
          description: "The export waits to be written",
          schema: Export,
          headers: { Location: "Where the export can be read", ...REPLAYED_FIELD },
        },
      },
      problems: [...BODY_PROBLEMS, "idempotency-key-reused", "export-queue-full", "exports-unavailable"],
    },
    async handle(request, { owner, keyId }) {
      const idempotencyKey = readIdempotencyKey(request);
      const { value, bytes } = await readJsonBody(request, EXPORT_BODY_LIMIT);
      const decision = decideExport(validate(value), now());
      if (!decision.ok) throw invalid(decision.fault);
      const { codes, ...draft } = decision.draft;
      if (codes) await refuseForeign(codes, owner);
      const author = { owner, orderedBy: keyId, idempotencyKey, digest: digestOf(bytes) };
      const { job, replayed } = await exports.order({ ...author, ...draft, codes: codes && [...codes] });
      const headers = { Location: placeOf(job.id), ...(replayed ? { "Idempotency-Replayed": "true" } : {}) };
      return { status: 202, body: present(job), headers };
    },
  });

  /** What is not the owner's is refused as what does not exist: neither says anything of other owners' links. */
  async function refuseForeign(codes: readonly string[], owner: string): Promise<void> {
    const own = await links.findOwn(codes, owner);
    const odd = codes.findIndex((code) => !own.has(code));
    if (odd < 0) return;
    throw invalid({ field: `codes[${odd}]`, rule: "exists", detail: "is not the code of a link of yours" });
  }

  const listExports = call({
    scope: "exports",
    query: ListExportsQuery,
    describe: {
      operationId: "listExports",
      summary: "List your exports, newest first",
      group: GROUP,
      answers: { 200: { description: "One page of exports", schema: ExportPage, headers: PAGE_FIELDS } },
      problems: ["invalid-cursor", "exports-unavailable"],
    },
    async handle(_request, { owner }, { after = null, ...parameters }) {
      const page = await exportListing.list({ owner, limit: parameters.limit ?? PAGE_DEFAULT, after });
      const body: ExportPage = { items: page.items.map(present), next: page.next };
      return replyWithPage("/v1/exports", parameters, body);
    },
  });

  const showExport = call({
    scope: "exports",
    describe: {
      operationId: "getExport",
      summary: "Show how far an export has come",
      group: GROUP,
      answers: { 200: { description: "The export", schema: Export } },
      problems: ["not-found", "exports-unavailable"],
    },
    async handle(request, { owner }) {
      return { status: 200, body: present(await exports.find(owner, idOf(request))) };
    },
  });

  const cancelExport = call({
    scope: "exports",
    describe: {
      operationId: "cancelExport",
      summary: "Cancel an export",
      description: "One that waits or is being written. Cancelling it again changes nothing.",
      group: GROUP,
      answers: { 200: { description: "It is cancelled", schema: Export } },
      problems: ["not-found", "export-finished", "exports-unavailable"],
    },
    async handle(request, { owner }) {
      const { outcome, job } = await exports.cancel(owner, idOf(request));
      if (outcome !== "finished") return { status: 200, body: present(job) };
      throw new Problem("export-finished", `the export has ended: it has ${job.state}, and cannot be cancelled`);
    },
  });

  const downloadExport = call({
    scope: "exports",
    describe: {
      operationId: "downloadExport",
      summary: "Download the file of an export",
      description: DOWNLOAD,
      group: GROUP,
      answers: {
        200: { description: "The file", others: FORMS, headers: FILE_FIELDS },
        206: {
          description: "A part of it",
          others: FORMS,
          headers: { ...FILE_FIELDS, "Content-Range": "Which part (RFC 9110 section 14.4)" },
        },
        304: { description: "The client has it already" },
      },
      problems: ["not-found", "not-ready", "precondition-failed", "range-not-satisfiable", "exports-unavailable"],
    },
    async handle(request, author) {
      const job = await exports.find(author.owner, idOf(request));
      const { file } = job;
      if (!file)
        throw new Problem("not-ready", `the export has no file: it is ${job.state}, ${WITHOUT_FILE[job.state]}`);
      const fields = {
        "Content-Disposition": createDisposition(nameExport(job)),
        "Cache-Control": "private, no-store",
      };
      const exchange = { request, response: responseOf(request) };
      const told = { ...exchange, author, job };
      if (deps.accelPrefix !== undefined) return handOver(`${deps.accelPrefix}${file.place}`, told, fields);
      const sent = await deps.downloads.send(author.owner, { ...exports.fileOf(job), fields }, exchange);
      tell(told, sent);
      return { status: sent.status, send: () => {} };
    },
  });

  type Told = { request: Request; response: Response; author: Caller; job: ExportJob };

  /** Each download, by whom and how far it came. */
  function tell(
    { request, response, author, job }: Told,
    { status, bytes, error }: Sent,
    outcome = error ? "broken" : "sent",
  ): void {
    deps.logger.info("download", {
      requestId: requestIdOf(response),
      ...{ export: job.id, owner: author.owner, keyId: author.keyId, address: clientAddress(request) },
      ...{ outcome, status, bytes },
      ...(error === undefined ? {} : { error }),
    });
  }

  /** A proxy in front looks the file up under a path that is not reachable from outside, and sends what is asked of it. */
  function handOver(path: string, told: Told, fields: Record<string, string>) {
    tell(told, { status: 200, bytes: 0, error: undefined }, "handed-over");
    const headers = { ...fields, "Content-Type": exportMediaType(told.job), "X-Accel-Redirect": path };
    return { status: 200, headers, send: (response: Response) => void response.end() };
  }

  return {
    "/v1/exports": { get: listExports, post: startExport },
    "/v1/exports/:id": { get: showExport, delete: cancelExport },
    "/v1/exports/:id/download": { get: downloadExport },
  };
}

/** As its owner sees it. */
function present({ number: _number, owner: _owner, orderedBy: _by, file, from, to, ...job }: ExportJob): Export {
  const time = (ms: number) => new Date(ms).toISOString().replace("Z", "000Z");
  const download = file === null ? null : `${placeOf(job.id)}/download`;
  return { ...job, from: from === null ? null : time(from), to: time(to), download };
}

function responseOf({ res: response }: Request): Response {
  if (!response) throw new Error("Express gives each request its response");
  return response;
}

/** What cannot be an id is not looked up. */
function idOf({ params: { id } }: Request): string {
  if (typeof id === "string" && isExportId(id)) return id;
  throw new Problem("not-found", "you have no such export");
}

function placeOf(id: string): string {
  return `/v1/exports/${id}`;
}

function invalid(fault: { field: string; rule: string; detail: string }): Problem {
  return new Problem("invalid-request", `${fault.field} ${fault.detail}`, [fault]);
}
