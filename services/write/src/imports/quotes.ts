// Where a CSV record ends (RFC 4180 section 2): at the first line break outside of quotes. A quote opens only at the
// beginning of a field, so that a stray one cannot swallow the lines behind it.
const QUOTE = 0x22;
const COMMA = 0x2c;
const CR = 0x0d;
const LF = 0x0a;

/** Where the break stands; or why there is none: a quote that is out of place, one that is not closed so far. */
export type RecordScan = { end: number } | "stray" | "open";

/**
 * Finds the end of the record that begins at `start`.
 * @param final nothing comes behind these bytes
 * @returns the index of the line feed, or of the end of the bytes where they are final
 */
export function scanRecord(bytes: Buffer, start: number, final: boolean): RecordScan {
  let at = start;
  for (;;) {
    const field = bytes[at] === QUOTE ? skipQuoted(bytes, at, final) : skipPlain(bytes, at);
    if (typeof field === "string") return field;
    at = field;
    if (at >= bytes.length) return final ? { end: bytes.length } : "open";
    if (bytes[at] === LF) return { end: at };
    at += 1;
  }
}

/** Index of the delimiter behind a field without quotes. */
function skipPlain(bytes: Buffer, start: number): number | "stray" {
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === COMMA || byte === LF) return at;
    if (byte === QUOTE) return "stray";
  }
  return bytes.length;
}

/** Index of the delimiter behind a field in quotes. */
function skipQuoted(bytes: Buffer, start: number, final: boolean): number | "stray" | "open" {
  let at = bytes.indexOf(QUOTE, start + 1);
  while (at >= 0 && bytes[at + 1] === QUOTE) at = bytes.indexOf(QUOTE, at + 2);
  if (at < 0) return "open";
  const next = bytes[at + 1] === CR ? at + 2 : at + 1;
  // What follows the quote, or the carriage return behind it, may still be on its way.
  if (next >= bytes.length) return final ? bytes.length : "open";
  const byte = bytes[next];
  return byte === LF || (byte === COMMA && next === at + 1) ? next : "stray";
}
