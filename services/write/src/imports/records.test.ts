import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { parseFields } from "./csv-fields.ts";
import { atBeginning, createRecordReader, type FileRecord } from "./records.ts";

type Told = { line: number; text: string; fault: FileRecord["fault"] };

function readAll(pieces: readonly Buffer[], quoted = true): Told[] {
  const reader = createRecordReader(quoted, atBeginning());
  const records = [...pieces, null].flatMap((piece) => [...reader.read(piece)]);
  const whole = Buffer.concat(pieces);
  const { bytes, digest } = reader.position();
  expect({ bytes, digest: digest.toString("hex") }).toEqual({
    bytes: whole.length,
    digest: createHash("sha256").update(whole).digest("hex"),
  });
  return records.map(({ line, bytes: text, fault }) => ({ line, text: text.toString("utf8"), fault }));
}

const read = (text: string, quoted = true) => readAll([Buffer.from(text)], quoted);
const told = (line: number, text: string, fault: FileRecord["fault"] = null) => ({ line, text, fault });

/** Cuts a text at some of its bytes. */
const cutUp = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
};

const field = fc
  .array(fc.constantFrom('"', ",", "\n", "\r\n", "\r", "a", "é", "🍞", " ", ";"), { maxLength: 8 })
  .map((parts) => parts.join(""));
const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
const row = fc.array(field, { minLength: 2, maxLength: 4 });
/** Pieces of files, many of them broken, and some around the bound of a line. */
const small = fc.constantFrom('"', '""', ",", "\n", "\r\n", "\r", "a", "é", "🍞", " ", "\0");
const large = fc.constantFrom("x".repeat(17_000), `${"x".repeat(17_000)}\n`, "y".repeat(32_767));
const anything = fc
  .array(fc.oneof({ arbitrary: small, weight: 6 }, { arbitrary: large, weight: 1 }), { maxLength: 30 })
  .map((parts) => Buffer.from(parts.join("")));

describe("records of a file", () => {
  test("begin at the line that is named, with any line breaks, blank lines, and no break at the end", () => {
    expect(read('a,b\r\n\n  \n"x\r\ny",1\nlast,2')).toEqual([told(1, "a,b"), told(4, '"x\r\ny",1'), told(6, "last,2")]);
  });

  test("are lines of JSON whatever quotes they have", () => {
    expect(read('{"a":"\\""}\n{"b', false)).toEqual([told(1, '{"a":"\\""}'), told(2, '{"b')]);
  });

  test("do not begin with a byte order mark, which is counted all the same", () => {
    expect(read("\uFEFFa,b\n\uFEFFc")).toEqual([told(1, "a,b"), told(2, "\uFEFFc")]);
    expect(read('\uFEFF"a",b')).toEqual([told(1, '"a",b')]);
  });

  test.each([
    [
      "a quote inside a field",
      'ok,1\n5" pipe,2\nok,3',
      [told(1, "ok,1"), told(2, '5" pipe,2', "stray-quote"), told(3, "ok,3")],
    ],
    ["text behind a closing quote", '"a"b,1\nok,2', [told(1, '"a"b,1', "stray-quote"), told(2, "ok,2")]],
    ["a carriage return behind a closing quote", '"a"\r,1\nok,2', [told(1, '"a"\r,1', "stray-quote"), told(2, "ok,2")]],
    [
      "a quote that is never closed",
      'ok,1\n"a,2\nok,3\nok,4',
      [...[told(1, "ok,1"), told(2, '"a,2', "open-quote"), told(3, "ok,3"), told(4, "ok,4")]],
    ],
    [
      "a quote that another line closes by chance",
      '"a,1\nb,"c"\nok,3',
      [...[told(1, '"a,1', "stray-quote"), told(2, 'b,"c"'), told(3, "ok,3")]],
    ],
  ])("%s spoils its own line alone", (_what, text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  test.each([32_768, 32_769, 200_000])("of %i bytes are kept up to 32 KB, and end at the end of their line", (size) => {
    const long = "x".repeat(size);
    const expected = size > 32_768 ? told(2, "", "too-long") : told(2, long);
    for (const quoted of [true, false])
      expect(read(`a\n${long}\nb`, quoted)).toEqual([told(1, "a"), expected, told(3, "b")]);
    expect(read(`a\n${long}`)).toEqual([told(1, "a"), expected]);
  });

  test("an open quote with more than 32 KB behind it spoils its first line alone", () => {
    const lines = Array.from({ length: 4000 }, (_, i) => `https://a.example/${i},x`);
    const [first, ...others] = read(`"open,1\n${lines.join("\n")}`);
    expect(first).toEqual(told(1, '"open,1', "open-quote"));
    expect(others.map(({ text }) => text)).toEqual(lines);
  });

  test("in quotes are kept up to 32 KB, and beyond that are judged line by line, in whatever pieces they come", () => {
    for (const size of [16_000, 17_000]) {
      const part = "x".repeat(size);
      const bytes = Buffer.from(`"${part}\n${part}",1\nok,2`);
      const inPieces = readAll(cutUp(bytes, [10, 33_000, 33_900]));
      expect(inPieces).toEqual(readAll([bytes]));
      const record = `"${part}\n${part}",1`;
      const [first, second] = record.split("\n") as [string, string];
      expect(inPieces).toEqual(
        size === 16_000
          ? [told(1, record), told(3, "ok,2")]
          : [told(1, first, "open-quote"), told(2, second, "stray-quote"), told(3, "ok,2")],
      );
    }
  });

  test("are the same for any pieces of any bytes, and every byte is in the digest", () => {
    fc.assert(
      fc.property(anything, fc.array(fc.nat(), { maxLength: 20 }), fc.boolean(), (bytes, cuts, quoted) => {
        expect(readAll(cutUp(bytes, cuts), quoted)).toEqual(readAll([bytes], quoted));
      }),
      { numRuns: 200 },
    );
  });

  test("of a well-formed file are those that the CSV library finds, byte by byte", () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), fc.constantFrom("\n", "\r\n"), (rows, lineBreak) => {
        const text = rows.map((cells) => cells.map(quote).join(",")).join(lineBreak);
        const bytes = Buffer.from(text);
        const pieces = [...bytes].map((byte) => Buffer.from([byte]));
        const records = readAll(pieces).map((record) => Buffer.from(record.text));
        expect(parseFields(records)).toEqual(rows);
        expect(parse(bytes, { recordDelimiter: lineBreak, relaxColumnCount: true })).toEqual(rows);
      }),
    );
  });

  test("are handed out once each by two readers, of which the second starts where the first was at any record", () => {
    fc.assert(
      fc.property(anything, fc.nat(30), fc.boolean(), (bytes, stopAfter, quoted) => {
        const whole = readAll([bytes], quoted);
        const hash = createHash("sha256");
        const reader = createRecordReader(quoted, { bytes: 0, line: 0, hash });
        const first: Told[] = [];
        for (const piece of [bytes, null])
          for (const { line, bytes: text, fault } of reader.read(piece)) {
            first.push({ line, text: text.toString("utf8"), fault });
            if (first.length === stopAfter) break;
          }
        fc.pre(first.length === stopAfter && stopAfter > 0);
        const at = reader.position();
        const prefix = createHash("sha256").update(bytes.subarray(0, at.bytes));
        expect(prefix.copy().digest()).toEqual(at.digest);
        const again = createRecordReader(quoted, { bytes: at.bytes, line: at.line, hash: prefix });
        const second = [bytes.subarray(at.bytes), null].flatMap((piece) => [...again.read(piece)]);
        const rest = second.map(({ line, bytes: text, fault }) => ({ line, text: text.toString("utf8"), fault }));
        expect([...first, ...rest]).toEqual(whole);
      }),
      { numRuns: 100 },
    );
  });
});
