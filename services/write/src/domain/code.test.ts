import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { CODE_PATTERN } from "@linkfence/contracts";
import fc from "fast-check";
import { CODE_ALPHABET, checkAlias, generateCode } from "./code.ts";
import { isReserved, RESERVED_WORDS } from "./reserved-words.ts";

/** Reproducible bytes that look random: a hash of a counter. */
function seededBytes(seed: string): (count: number) => Uint8Array {
  let block = 0;
  return (count) => {
    const bytes: number[] = [];
    while (bytes.length < count) bytes.push(...createHash("sha256").update(`${seed}${block++}`).digest());
    return Uint8Array.from(bytes.slice(0, count));
  };
}

describe("a random code", () => {
  test("has the length asked for, out of 57 characters that cannot be taken for one another", () => {
    expect(new Set(CODE_ALPHABET).size).toBe(57);
    expect(CODE_ALPHABET).not.toMatch(/[0O1lI]/);
    fc.assert(
      fc.property(fc.integer({ min: 8, max: 32 }), fc.string(), (length, seed) => {
        const code = generateCode(length, seededBytes(seed));
        expect(code).toHaveLength(length);
        expect(code).toMatch(CODE_PATTERN);
        expect([...code].every((character) => CODE_ALPHABET.includes(character))).toBe(true);
      }),
    );
  });

  test("is drawn without bias: each character as often as any other", () => {
    const counts = new Map<string, number>();
    const draws = 20_000;
    const bytes = seededBytes("bias");
    for (let n = 0; n < draws; n += 1)
      for (const character of generateCode(8, bytes)) counts.set(character, (counts.get(character) ?? 0) + 1);
    const expected = (draws * 8) / 57;
    const chiSquare = [...CODE_ALPHABET].reduce((sum, c) => sum + ((counts.get(c) ?? 0) - expected) ** 2 / expected, 0);
    // 56 degrees of freedom: 99.9 % of fair draws stay below 94.5. Folding 256 values onto 57 gives thousands.
    expect(chiSquare).toBeLessThan(94.5);
    const folded = [...CODE_ALPHABET].reduce((sum, _, index) => {
      const share = (Math.floor(255 / 57) + (index <= 255 % 57 ? 1 : 0)) / 256;
      return sum + (share * draws * 8 - expected) ** 2 / expected;
    }, 0);
    expect(folded).toBeGreaterThan(94.5);
  });

  test("is never a reserved word: one that comes up is drawn again", () => {
    const bytesOf = (word: string) => [...word].map((character) => CODE_ALPHABET.indexOf(character));
    const reserved = RESERVED_WORDS.find(
      (word) => word.length === 8 && [...word].every((c) => CODE_ALPHABET.includes(c)),
    );
    if (!reserved) throw new Error("no reserved word of 8 characters of the alphabet");
    const draws = [...bytesOf(reserved), ...bytesOf(reserved), ...bytesOf("Abcdefgh"), ...bytesOf("Abcdefgh")];
    expect(generateCode(8, (count) => Uint8Array.from(draws.splice(0, count)))).toBe("Abcdefgh");
  });

  test("is refused from a broken source rather than made of what it gives", () => {
    expect(() => generateCode(8, (count) => new Uint8Array(count).fill(255))).toThrow(RangeError);
  });
});

describe("an alias", () => {
  test.each([
    "a?b",
    "a#b",
    "a/b",
    "a\\b",
    "     ",
    "a b",
    "🍞",
    "a%20b",
    "a+b",
    "a:b",
    "ａｂｃ",
    "аbc",
    "/",
    "a.b",
    "a\u0000b",
    "abc\n",
    "\u212aelvin",
    "ſee",
  ])("%j is refused for its characters", (text) => {
    expect(checkAlias(text)).toMatchObject({ ok: false, rule: "characters" });
  });

  test.each(["", "ab", "a".repeat(33), "a".repeat(65)])("%j is refused for its length", (text) => {
    expect(checkAlias(text)).toMatchObject({ ok: false, rule: "length" });
  });

  test.each([
    "api",
    "health",
    "healthz",
    "readyz",
    "livez",
    "metrics",
    "favicon.ico",
    "robots.txt",
    ".well-known",
    "links",
    "admin",
  ])("%s is reserved, in whatever case", (word) => {
    const capital = word.charAt(0).toUpperCase() + word.slice(1);
    for (const text of [word, word.toUpperCase(), capital])
      expect(checkAlias(text)).toMatchObject({ ok: false, rule: "reserved" });
  });

  test("is taken exactly as it stands when it fits", () => {
    for (const text of ["Promo", "promo", "a-b_C", "123", "a".repeat(32)])
      expect(checkAlias(text)).toEqual({ ok: true, code: text });
  });

  test("fits exactly when it matches the pattern and is not reserved", () => {
    const texts = fc.oneof(fc.string(), fc.stringMatching(CODE_PATTERN), fc.constantFrom(...RESERVED_WORDS));
    fc.assert(
      fc.property(texts, (text) => expect(checkAlias(text).ok).toBe(CODE_PATTERN.test(text) && !isReserved(text))),
    );
  });
});
