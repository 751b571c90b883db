// Cuts a file into records, whatever pieces it comes in. A record that is too long or has its quotes wrong is one fault of
// its first line alone, and reading goes on with the next line: nothing behind it is lost, and nothing is kept but what
// one record may have. The digest covers exactly the bytes of the records that were handed out.
import { createHash, type Hash } from "node:crypto";
import { IMPORT_LINE_MAX_BYTES } from "@linkfence/contracts";
import { scanRecord } from "./quotes.ts";

const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const NOTHING = Buffer.alloc(0);

export type RecordFault = "too-long" | "stray-quote" | "open-quote";
/** `bytes` without the line break at the end; `line` is where it begins, from 1 on. */
export type FileRecord = { line: number; bytes: Buffer; fault: RecordFault | null };

/** Up to where a file was read: bytes, their SHA-256, and the last line. */
export type Position = { bytes: number; digest: Buffer; line: number };

/** Where reading starts: at the beginning, or behind what was read before. */
export type Start = { bytes: number; line: number; hash: Hash };
export const atBeginning = (): Start => ({ bytes: 0, line: 0, hash: createHash("sha256") });

export type RecordReader = ReturnType<typeof createRecordReader>;

/** Creates the reader of one file. */
export function createRecordReader(quoted: boolean, { hash, ...start }: Start) {
  let { bytes: offset, line } = start;
  /** Bytes that are here and not read: those of a record that has not ended, and the rest of a piece. */
  let rest: Buffer = NOTHING;
  let at = 0;
  let quoteAt = -1;
  /** Where a line that is too long began, until its end is here. */
  let skippedFrom: Position | null = null;
  let marked = offset > 0;

  /** Counts the bytes up to `end` as read. */
  function consume(end: number, breaks: number): void {
    const bytes = rest.subarray(at, end);
    hash.update(bytes);
    offset += bytes.length;
    line += breaks;
    at = end;
  }

  /** Hands out the bytes up to the line break at `end`, or the end of the file, as one record. */
  function cut(end: number, fault: RecordFault | null): FileRecord {
    const first = line + 1;
    const bytes = rest.subarray(at, end > at && rest[end - 1] === CR ? end - 1 : end);
    const tooLong = end - at > IMPORT_LINE_MAX_BYTES;
    consume(Math.min(end + 1, rest.length), countBreaks(rest.subarray(at, end)) + 1);
    return { line: first, bytes: tooLong ? NOTHING : bytes, fault: tooLong ? "too-long" : fault };
  }

  /** Throws away a line that is too long, as it comes. It becomes a record when its end is here, and not before. */
  function skipLine(final: boolean): FileRecord | undefined {
    const end = rest.indexOf(LF, at);
    consume(end < 0 ? rest.length : end + 1, 0);
    if (end < 0 && !final) return undefined;
    skippedFrom = null;
    line += 1;
    return { line, bytes: NOTHING, fault: "too-long" };
  }

  /** The next record among what is here; undefined where more is needed for it. */
  function next(final: boolean): FileRecord | undefined {
    const held = rest.length - at;
    if (held === 0) return undefined;
    const lineEnd = rest.indexOf(LF, at);
    const end = lineEnd < 0 ? rest.length : lineEnd;
    if (quoted && hasQuote(end)) return nextQuoted(end, final);
    if (lineEnd >= 0 || final) return cut(end, null);
    return waitFor(held, final);
  }

  /** @param end of the line in which the record begins */
  function nextQuoted(end: number, final: boolean): FileRecord | undefined {
    // Only so much is looked at, however much is here: where a record ends must not depend on the pieces it came in.
    const whole = rest.length - at <= IMPORT_LINE_MAX_BYTES;
    const seen = whole ? rest : rest.subarray(0, at + IMPORT_LINE_MAX_BYTES + 1);
    const scan = scanRecord(seen, at, final && whole);
    if (scan !== "stray" && scan !== "open") return cut(scan.end, null);
    const lineIsHere = end < rest.length || final;
    if (scan === "stray") return lineIsHere ? cut(end, "stray-quote") : waitFor(end - at, final);
    // The closing quote may be on its way, as long as the record may grow.
    if (!final && whole) return undefined;
    return lineIsHere ? cut(end, "open-quote") : waitFor(end - at, final);
  }

  /** The end of a line is not here yet; is what is here of it too much already? */
  function waitFor(held: number, final: boolean): FileRecord | undefined {
    if (held <= IMPORT_LINE_MAX_BYTES) return undefined;
    skippedFrom = position();
    return skipLine(final);
  }

  /** Whether there is a quote before `end`; looked for once in each stretch of bytes without one. */
  function hasQuote(end: number): boolean {
    if (quoteAt < at) {
      const found = rest.indexOf(QUOTE, at);
      quoteAt = found < 0 ? rest.length : found;
    }
    return quoteAt < end;
  }

  /** A mark at the beginning says nothing in UTF-8; it is read, and no part of the first field. */
  function skipMark(final: boolean): boolean {
    if (marked) return true;
    if (rest.length < BYTE_ORDER_MARK.length && !final) return false;
    marked = true;
    if (rest.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) consume(BYTE_ORDER_MARK.length, 0);
    return true;
  }

  /** Reads a piece, and hands out the records that have ended; the last piece is `null`. Blank lines are left out. */
  function* read(piece: Buffer | null): Generator<FileRecord> {
    const final = piece === null;
    rest = Buffer.concat([rest.subarray(at), piece ?? NOTHING]);
    at = 0;
    quoteAt = -1;
    if (!skipMark(final)) return;
    for (;;) {
      const record = skippedFrom ? skipLine(final) : next(final);
      if (!record) return;
      if (record.fault || !isBlank(record.bytes)) yield record;
    }
  }

  /** Where the last record ended that was handed out: never in the middle of one. */
  function position(): Position {
    return skippedFrom ?? { bytes: offset, digest: hash.copy().digest(), line };
  }

  return { read, position };
}

function countBreaks(bytes: Buffer): number {
  let breaks = 0;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) breaks += 1;
  return breaks;
}

/** Nothing but blanks and tabs. */
function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09);
}
