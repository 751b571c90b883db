// What an export is to hold, as its owner says it, and as click-ingest has to know it.
import {
  EXPORT_LATEST_MS,
  type ExportFormat,
  type FieldFault,
  isCode,
  type StartExportRequest,
} from "@linkfence/contracts";
import { parseDateTime } from "./date-time.ts";

/** Times are in ms since 1970; `codes` are different ones. What is null is not limited. */
export type ExportDraft = {
  codes: readonly string[] | null;
  from: number | null;
  to: number;
  format: ExportFormat;
  gzip: boolean;
};
export type ExportDecision = { ok: true; draft: ExportDraft } | { ok: false; fault: FieldFault };

/**
 * Decides what an order means. Nothing is guessed or clamped.
 * @param now ms since 1970: where a period ends that names no end
 */
export function decideExport(request: StartExportRequest, now: number): ExportDecision {
  const codes = request.codes ?? null;
  const odd = codes?.findIndex((code) => !isCode(code)) ?? -1;
  if (odd >= 0) return refuse(`codes[${odd}]`, "code", "cannot be the code of a link");
  const from = readTime("from", request.from);
  if (typeof from === "object" && from !== null) return { ok: false, fault: from };
  const to = readTime("to", request.to);
  if (typeof to === "object" && to !== null) return { ok: false, fault: to };
  const end = to ?? now;
  if (from !== null && from >= end)
    return refuse("from", "order", to === null ? "must be before now" : "must be before to");
  const { format, gzip } = request;
  const draft = { codes: codes && [...new Set(codes)], from, to: end, format: format ?? "csv", gzip: gzip ?? false };
  return { ok: true, draft };
}

/** The first millisecond that is not before a time: clicks have no finer one. */
function readTime(field: "from" | "to", text: string | null | undefined): number | null | FieldFault {
  if (text === undefined || text === null) return null;
  const time = parseDateTime(text);
  if (!time) return faultOf(field, "date-time", "must be a time as in RFC 3339, with its offset: 2026-01-31T12:00:00Z");
  const ms = time.ms + Math.ceil(Number(time.micros) / 1000);
  if (ms < 0 || ms > EXPORT_LATEST_MS) return faultOf(field, "range", "must be from 1970 to 2099");
  return ms;
}

const faultOf = (field: string, rule: string, detail: string): FieldFault => ({ field, rule, detail });

function refuse(field: string, rule: string, detail: string): ExportDecision {
  return { ok: false, fault: faultOf(field, rule, detail) };
}
