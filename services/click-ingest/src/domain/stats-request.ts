// What is asked of the roll-ups: sums between cuts, which fall on quarters of an hour. Only write asks.
import { type FieldFault, QUARTER_MS, STATS_LATEST, STATS_POINTS_MAX, STATS_TOP } from "@linkfence/contracts";

/** `edges` are the cuts as numbers of quarters of an hour since 1970, rising; `top` values of each kind are wanted. */
export type SumsRequest = { edges: readonly number[]; top: number; stepped: boolean };
export type SumsDecision = { ok: true; request: SumsRequest } | { ok: false; fault: FieldFault };
export type ClicksRequest = { limit: number; before: string | null };
export type ClicksDecision = { ok: true; request: ClicksRequest } | { ok: false; fault: FieldFault };

/** Parameters as they come: each of them once, or not at all. */
export type Parameters = Readonly<Record<string, string | undefined>>;

/** No click is counted later than this. */
const LAST_QUARTER = Date.parse(STATS_LATEST) / QUARTER_MS;
/** One more than a page of the API has: whether there is another page. */
const CLICKS_MAX = 1001;
/** Five digits a step, with the comma: a single step of eighty years has seven. */
const STEPS_LENGTH_MAX = 6 * STATS_POINTS_MAX + 10;
const NUMBER = /^(?:0|[1-9]\d{0,14})$/;
const STEPS = /^[1-9]\d{0,6}(?:,[1-9]\d{0,6})*$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Characters of an owner's name at the most, in UTF-16 units. */
const OWNER_MAX = 200;

/** Reads `start` (ms since 1970), `steps` (quarters of an hour, parted by commas) and `top`. Without steps all there is is one sum. */
export function decideSums({ start, steps, top = "0" }: Parameters): SumsDecision {
  const values = readNumber(top, STATS_TOP);
  if (values === undefined) return refuse("top", "range", `must be a number from 0 to ${STATS_TOP}`);
  if (start === undefined && steps === undefined)
    return { ok: true, request: { edges: [0, LAST_QUARTER], top: values, stepped: false } };
  const first = readNumber(start, Date.parse(STATS_LATEST));
  if (first === undefined || first % QUARTER_MS !== 0)
    return refuse("start", "quarter", "must be the beginning of a quarter of an hour, in ms since 1970");
  const edges = readSteps(first / QUARTER_MS, steps);
  if (edges) return { ok: true, request: { edges, top: values, stepped: true } };
  const detail = `must be 1 to ${STATS_POINTS_MAX} numbers of quarters of an hour, parted by commas, and end before 2100`;
  return refuse("steps", "steps", detail);
}

/** Reads `limit` and `before`, the id of a click. */
export function decideClicks({ limit = "100", before }: Parameters): ClicksDecision {
  const most = readNumber(limit, CLICKS_MAX);
  if (!most) return refuse("limit", "range", `must be a number from 1 to ${CLICKS_MAX}`);
  if (before !== undefined && !UUID.test(before)) return refuse("before", "uuid", "must be the id of a click");
  return { ok: true, request: { limit: most, before: before ?? null } };
}

/** What can be an owner: text that PostgreSQL can hold. */
export function isOwner(text: string | undefined): text is string {
  return text !== undefined && text !== "" && text.length <= OWNER_MAX && !/[\0\p{Cs}]/u.test(text);
}

function readSteps(first: number, text: string | undefined): number[] | undefined {
  if (text === undefined || text.length > STEPS_LENGTH_MAX || !STEPS.test(text)) return undefined;
  const edges = [first];
  for (const step of text.split(",")) edges.push((edges.at(-1) ?? first) + Number(step));
  return edges.length <= STATS_POINTS_MAX + 1 && (edges.at(-1) ?? 0) <= LAST_QUARTER ? edges : undefined;
}

function readNumber(text: string | undefined, most: number): number | undefined {
  const value = text !== undefined && NUMBER.test(text) ? Number(text) : Number.NaN;
  return value <= most ? value : undefined;
}

function refuse(field: string, rule: string, detail: string): { ok: false; fault: FieldFault } {
  return { ok: false, fault: { field, rule, detail } };
}
