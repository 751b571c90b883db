import { describe, expect, test } from "@jest/globals";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { createLineEnds } from "./line-ends.ts";

/** A table as the server writes it in CSV: LF ends a row, and cells with anything in them are quoted. */
const write = (rows: readonly (readonly string[])[]) =>
  rows.map((row) => `${row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")}\n`).join("");
const cell = fc.string({ unit: fc.constantFrom('"', "\n", "\r", ",", "a", "é"), maxLength: 6 });
const table = fc.array(fc.array(cell, { minLength: 2, maxLength: 2 }), { minLength: 1, maxLength: 6 });

/** Takes a text in pieces of any sizes. */
function takeInPieces(text: string, sizes: readonly number[], quotes: boolean) {
  const bytes = Buffer.from(text);
  const lines = createLineEnds({ quotes });
  const pieces: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes[n % sizes.length] ?? 1;
    pieces.push(Buffer.from(lines.take(bytes.subarray(at, at + size))));
    at += size;
  }
  return { text: Buffer.concat(pieces).toString(), lines: lines.lines() };
}
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });

describe("lines of CSV", () => {
  test("end with CRLF, are counted, and have the cells that they had, whatever stands in those and wherever pieces end", () => {
    fc.assert(
      fc.property(table, sizes, (rows, pieces) => {
        const taken = takeInPieces(write(rows), pieces, true);
        expect(taken.lines).toBe(rows.length);
        expect(parse(taken.text, { record_delimiter: "\r\n" })).toEqual(rows);
      }),
    );
  });
});

describe("lines of JSON", () => {
  test("stay as they are, and are counted", () => {
    fc.assert(
      fc.property(table, sizes, (rows, pieces) => {
        const text = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
        expect(takeInPieces(text, pieces, false)).toEqual({ text, lines: rows.length });
      }),
    );
  });
});
