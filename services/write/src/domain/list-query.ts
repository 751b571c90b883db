import type { FieldFault, ListLinksQuery, ListState } from "@linkfence/contracts";
import { formatDateTime, LATEST_MS, parseDateTime } from "./date-time.ts";
import { isStorable, UNSTORABLE } from "./metadata.ts";

/** Which of an owner's links are listed. Times are UTC text with microseconds, and themselves left out. */
export type ListFilter = {
  state: ListState | null;
  tag: string | null;
  createdAfter: string | null;
  createdBefore: string | null;
};

/** The parameters of a listing, less the cursor; their shapes have been checked. */
export type ListParameters = Omit<ListLinksQuery, "after">;

export type ListDecision = { ok: true; limit: number; filter: ListFilter } | { ok: false; fault: FieldFault };

/** Of a page that does not say how many. */
export const DEFAULT_LIMIT = 20;
/** PostgreSQL has no year 0. */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");

type Read<T> = { ok: true; value: T } | { ok: false; fault: FieldFault };

/** Decides what a listing is to show. Nothing is guessed or clamped. */
export function decideListing(parameters: ListParameters): ListDecision {
  const { limit = DEFAULT_LIMIT, state = null, tag, createdAfter, createdBefore } = parameters;
  const reads = {
    tag: readTag(tag),
    createdAfter: readTime("createdAfter", createdAfter),
    createdBefore: readTime("createdBefore", createdBefore),
  };
  for (const read of Object.values(reads)) if (!read.ok) return read;
  const given = <T>(read: Read<T>): T | null => (read.ok ? read.value : null);
  return {
    ok: true,
    limit,
    filter: {
      state,
      tag: given(reads.tag),
      createdAfter: given(reads.createdAfter),
      createdBefore: given(reads.createdBefore),
    },
  };
}

function readTag(text: string | undefined): Read<string | null> {
  if (text === undefined) return { ok: true, value: null };
  return isStorable(text) ? { ok: true, value: text } : refuse("tag", UNSTORABLE.rule, UNSTORABLE.detail);
}

function readTime(field: string, text: string | undefined): Read<string | null> {
  if (text === undefined) return { ok: true, value: null };
  const time = parseDateTime(text);
  if (!time)
    return refuse(field, "date-time", "must be an RFC 3339 time, as in 2026-01-31T12:00:00Z; a + is written %2B");
  if (time.ms < EARLIEST_MS || time.ms > LATEST_MS)
    return refuse(field, "range", "must lie in the years 1 to 9999 in UTC");
  return { ok: true, value: formatDateTime(time) };
}

function refuse(field: string, rule: string, detail: string): { ok: false; fault: FieldFault } {
  return { ok: false, fault: { field, rule, detail } };
}
