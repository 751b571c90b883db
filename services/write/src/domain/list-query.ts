import { type FieldFault, LIST_LIMIT, LIST_STATES, type ListState } from "@linkfence/contracts";
import { formatDateTime, LATEST_MS, parseDateTime } from "./date-time.ts";
import { isStorable, UNSTORABLE } from "./metadata.ts";

/** Which of an owner's links are listed. Times are UTC text with microseconds, and themselves left out. */
export type ListFilter = {
  state: ListState | null;
  tag: string | null;
  createdAfter: string | null;
  createdBefore: string | null;
};

/** Names of the parameters of a listing, less the cursor. */
export const LIST_PARAMETERS = ["limit", "state", "tag", "createdAfter", "createdBefore"] as const;
export type ListParameters = Partial<Record<(typeof LIST_PARAMETERS)[number], string>>;

export type ListDecision = { ok: true; limit: number; filter: ListFilter } | { ok: false; fault: FieldFault };

const DEFAULT_LIMIT = 20;
/** As long as a tag can be. */
const TAG_MAX = 50;
/** PostgreSQL has no year 0. */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");

type Read<T> = { ok: true; value: T } | { ok: false; fault: FieldFault };

/** Decides what a listing is to show. Nothing is guessed or clamped. */
export function decideListing(parameters: ListParameters): ListDecision {
  const { limit, state, tag, createdAfter, createdBefore } = parameters;
  const reads = {
    limit: readLimit(limit),
    state: readState(state),
    tag: readTag(tag),
    after: readTime("createdAfter", createdAfter),
    before: readTime("createdBefore", createdBefore),
  };
  for (const read of Object.values(reads)) if (!read.ok) return read;
  const given = <T>(read: Read<T>): T | null => (read.ok ? read.value : null);
  return {
    ok: true,
    limit: given(reads.limit) ?? DEFAULT_LIMIT,
    filter: {
      state: given(reads.state),
      tag: given(reads.tag),
      createdAfter: given(reads.after),
      createdBefore: given(reads.before),
    },
  };
}

/** Plain digits only: what `Number` takes besides (`0x10`, `1e1`, blanks) is a mistake of whoever wrote it. */
function readLimit(text: string | undefined): Read<number> {
  if (text === undefined) return { ok: true, value: DEFAULT_LIMIT };
  const value = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= LIST_LIMIT) return { ok: true, value };
  return refuse("limit", "range", `must be a whole number from 1 to ${LIST_LIMIT}`);
}

function readState(text: string | undefined): Read<ListState | null> {
  const value = text === undefined ? null : LIST_STATES.find((state) => state === text);
  return value === undefined
    ? refuse("state", "enum", `must be one of ${LIST_STATES.join(", ")}`)
    : { ok: true, value };
}

function readTag(text: string | undefined): Read<string | null> {
  if (text === undefined) return { ok: true, value: null };
  if (text === "" || [...text].length > TAG_MAX) return refuse("tag", "length", `must have 1 to ${TAG_MAX} characters`);
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
