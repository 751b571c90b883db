import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { CURSOR_MAX, formatCursor, parseCursor, signedText } from "./cursor.ts";

const position = { createdAt: "2026-12-01T04:14:32.123456Z", code: "abc_-123" };
const signature = "s".repeat(43);
const filter = { state: null, tag: null, createdAfter: null, createdBefore: null };

describe("a cursor", () => {
  test("is taken apart into what it was made of", () => {
    const ofGreatestLength = { keyId: 2_147_483_647, position: { ...position, code: "c".repeat(32) }, signature };
    for (const cursor of [{ keyId: 1, position, signature }, ofGreatestLength])
      expect(parseCursor(formatCursor(cursor))).toEqual(cursor);
    expect(formatCursor(ofGreatestLength)).toHaveLength(CURSOR_MAX);
  });

  test("of any other text is none, and one that is taken apart is the very same text again", () => {
    const text = formatCursor({ keyId: 1, position, signature });
    const parts = fc.constantFrom("", "1", "~", "01", "\n", "\0", position.createdAt, position.code, signature, "é");
    const near = fc.array(parts, { maxLength: 8 }).map((list) => list.join("~"));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), near, fc.constant(text)), (candidate) => {
        const cursor = parseCursor(candidate);
        if (cursor) expect(formatCursor(cursor)).toBe(candidate);
      }),
    );
    for (const other of ["", `${text}\n`, ` ${text}`, text.slice(1), text.slice(0, -1), `${text}x`, text.repeat(100)])
      expect(parseCursor(other)).toBeUndefined();
  });

  test("is signed together with its key, its owner and every filter", () => {
    const base = { owner: "ann", filter };
    const texts = [
      signedText(1, position, base),
      signedText(2, position, base),
      signedText(1, { ...position, code: "other" }, base),
      signedText(1, { ...position, createdAt: "2026-12-01T04:14:32.123457Z" }, base),
      signedText(1, position, { ...base, owner: "bob" }),
      signedText(1, position, { ...base, filter: { ...filter, state: "active" } }),
      signedText(1, position, { ...base, filter: { ...filter, tag: "active" } }),
      signedText(1, position, { ...base, filter: { ...filter, tag: 'active",null' } }),
      signedText(1, position, { ...base, filter: { ...filter, createdAfter: "2026-01-01T00:00:00.000000Z" } }),
      signedText(1, position, { ...base, filter: { ...filter, createdBefore: "2026-01-01T00:00:00.000000Z" } }),
    ];
    expect(new Set(texts).size).toBe(texts.length);
  });
});
