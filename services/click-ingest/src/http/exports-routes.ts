// Exports, for write: it knows who may order what, and names the owner in each call. A file is sent by Express, which
// knows ranges and conditions (RFC 9110 sections 13 and 14); one that breaks off ends the connection.
import {
  EXPORTS_LIMIT,
  type ExportJob,
  ExportOrder,
  exportMediaType,
  type FieldFault,
  Problem,
} from "@linkfence/contracts";
import { createValidator, type Logger } from "@linkfence/service-shell";
import express, { type Request, type RequestHandler, type Response, Router } from "express";
import { isOwner } from "../domain/stats-request.ts";
import type { ExportFiles } from "../exports/export-files.ts";
import type { ExportStore, Ordered } from "../store/exports.ts";
import { allowOnly } from "./allow-only.ts";
import { parametersOf, refuseParameter } from "./parameters.ts";

export type ExportsRouteOptions = {
  /** Undefined where this installation exports nothing. */
  exports: { store: ExportStore; files: Pick<ExportFiles, "locate">; wake: () => void } | undefined;
  logger: Logger;
};

/** A thousand codes of 32 characters with their quotes, and the rest. */
const ORDER_MAX_BYTES = 64 * 1024;
const NUMBER = /^[1-9]\d{0,14}$/;
const [ALL, ONE, FILE] = ["/v1/exports", "/v1/exports/:id", "/v1/exports/:id/file"];

const checkOrder = createValidator(ExportOrder);

/** Creates the routes. */
export function createExportsRoutes({ exports, logger }: ExportsRouteOptions): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const parse = express.json({ limit: ORDER_MAX_BYTES, type: "application/json" });

  function parts() {
    if (exports) return exports;
    throw new Problem("exports-unavailable", "this installation has no directory for exports (EXPORT_DIR)");
  }

  async function ask<T>(asked: (store: ExportStore) => Promise<T>): Promise<T> {
    const { store } = parts();
    return asked(store).catch((error: unknown) => {
      logger.warn("exports cannot be reached", { error });
      throw new Problem("exports-unavailable", "exports cannot be reached now; try again later");
    });
  }

  router.post(ALL, parse as RequestHandler, async (request, response) => {
    const order = checkOrder(request.body);
    const ordered = await ask((store) => store.order(order));
    if (!("job" in ordered)) throw refusalOf(ordered.outcome);
    if (ordered.outcome === "created") parts().wake();
    response.status(ordered.outcome === "created" ? 201 : 200).json(ordered.job satisfies ExportJob);
  });
  router.get(ALL, async (request, response) => {
    const { owner, limit = String(EXPORTS_LIMIT), before } = parametersOf(request, ["owner", "limit", "before"]);
    const most = NUMBER.test(limit) ? Number(limit) : 0;
    if (most < 1 || most > EXPORTS_LIMIT + 1)
      throw refuseParameter(fault("limit", "range", `must be a number from 1 to ${EXPORTS_LIMIT + 1}`));
    if (before !== undefined && !NUMBER.test(before))
      throw refuseParameter(fault("before", "range", "must be the number of an export"));
    const range = { limit: most, before: before === undefined ? null : Number(before) };
    response.json({ items: await ask((store) => store.list(readOwner(owner), range)) });
  });

  async function find(request: Request): Promise<ExportJob> {
    const owner = readOwner(parametersOf(request, ["owner"]).owner);
    return ask((store) => store.find(owner, idOf(request))).then(orMissing);
  }

  router.get(ONE, async (request, response) => void response.json(await find(request)));
  router.delete(ONE, async (request, response) => {
    const owner = readOwner(parametersOf(request, ["owner"]).owner);
    response.json(orMissing(await ask((store) => store.cancel(owner, idOf(request)))));
  });
  router.get(FILE, async (request, response, next) => {
    const job = await find(request);
    if (!job.file) throw new Problem("not-ready", `the export has no file: it is ${job.state.toLowerCase()}`);
    sendFile(response, parts().files.locate(job.file.place), job, (error) => {
      if (error === undefined || response.destroyed) return;
      next(refusalOfFile(error) ?? unreadable(job, error));
    });
  });
  function unreadable({ id }: ExportJob, error: Error): Problem {
    logger.error("a file cannot be sent", { export: id, error });
    return new Problem("exports-unavailable", "the file cannot be read now");
  }
  router.all(ALL, allowOnly("GET, HEAD, POST"));
  router.all(ONE, allowOnly("DELETE, GET, HEAD"));
  router.all(FILE, allowOnly("GET, HEAD"));
  return router;
}

/** Sends it, or the part that was asked for. What the file is follows from the job, not from its name. */
function sendFile(
  response: Response,
  { root, path }: { root: string; path: string },
  job: ExportJob,
  done: (error?: Error) => void,
): void {
  const headers: Record<string, string> = {
    "Content-Type": exportMediaType(job),
    ETag: job.file?.etag ?? "",
    "Last-Modified": new Date(job.file?.at ?? 0).toUTCString(),
  };
  response.sendFile(path, { root, headers, cacheControl: false, dotfiles: "deny" }, done);
}

/** A range that the file has nothing of, or a condition that does not hold: the request's fault. */
function refusalOfFile(error: Error): Problem | undefined {
  const status = "status" in error ? error.status : undefined;
  if (status === 416) return new Problem("range-not-satisfiable", "the file has none of the bytes that were asked for");
  return status === 412 ? new Problem("precondition-failed", "the file is another one") : undefined;
}

function refusalOf(outcome: Exclude<Ordered["outcome"], "created" | "replayed">): Problem {
  if (outcome === "reused")
    return new Problem("idempotency-key-reused", "the idempotency key belongs to another order of this owner");
  const whose = outcome === "owner-full" ? "of this owner " : "";
  return new Problem("export-queue-full", `as many exports ${whose}wait as may; try again later`);
}

function idOf({ params: { id } }: Request): string {
  return typeof id === "string" ? id : "";
}

function orMissing<T>(found: T | undefined): T {
  if (found !== undefined) return found;
  throw new Problem("not-found", "the owner has no such export");
}

function readOwner(owner: string | undefined): string {
  if (isOwner(owner)) return owner;
  throw refuseParameter(fault("owner", "owner", "must be the name of an owner"));
}

function fault(field: string, rule: string, detail: string): FieldFault {
  return { field, rule, detail };
}
