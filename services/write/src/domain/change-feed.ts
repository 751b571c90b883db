// How changes go out as a stream of events (WHATWG HTML, section 9.2.6), and how its reader says where it stands.
import type { FieldFault, LinkChange } from "@linkfence/contracts";

/** Digits as JavaScript writes a number that counts exactly: nothing is guessed. */
const POSITION = /^(?:0|[1-9]\d{0,15})$/;

export type PositionDecision = { ok: true; position: number | null } | { ok: false; fault: FieldFault };

/**
 * Decides where a reader stands by its field `Last-Event-ID`. No such field is no position; an empty one is refused, as
 * who lost its position would otherwise go on from somewhere else and never know.
 * @param values the field's values, one for each time that it was sent
 */
export function decideLastEventId(values: readonly string[]): PositionDecision {
  const [value, ...more] = values;
  if (value === undefined) return { ok: true, position: null };
  if (more.length > 0) return refuse("repeated", "must be sent once");
  const position = POSITION.test(value) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(position)) return { ok: true, position };
  return refuse(
    "position",
    "must be the id of an event of this stream, unchanged: a number from 0 to 9007199254740991",
  );
}

function refuse(rule: string, detail: string): { ok: false; fault: FieldFault } {
  return { ok: false, fault: { field: "Last-Event-ID", rule, detail } };
}

/** One change as an event. JSON has no line breaks outside of its texts and escapes those within: it is one line. */
export function formatEvent(change: LinkChange): string {
  return `id: ${change.seq}\nevent: ${change.type}\ndata: ${JSON.stringify(change)}\n\n`;
}

/**
 * What opens a stream: after how long to come back should it break, and where it starts. An id without data is no event;
 * its reader keeps it, and so misses nothing even where the stream breaks before the first event.
 * @param retryMs whole ms
 */
export function formatOpening(position: number, retryMs: number): string {
  return `retry: ${retryMs}\nid: ${position}\n\n`;
}

/** A comment, which keeps proxies from taking the stream for dead, and where its reader stands by now. */
export function formatHeartbeat(position: number): string {
  return `:\nid: ${position}\n\n`;
}
