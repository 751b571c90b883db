import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { decideIdempotencyKey } from "./idempotency-key.ts";

const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const keys = fc.string({ unit: visible, minLength: 1, maxLength: 255 });
/** As RFC 9651 section 4.1.6 writes a string. */
const quote = (key: string) => `"${key.replace(/["\\]/g, "\\$&")}"`;
const rule = (...fields: string[]) => {
  const decision = decideIdempotencyKey(fields);
  return decision.ok ? "accepted" : decision.rule;
};

describe("an Idempotency-Key", () => {
  test("in quotes is any text of 1 to 255 visible ASCII characters", () => {
    fc.assert(fc.property(keys, (key) => expect(decideIdempotencyKey([quote(key)])).toEqual({ ok: true, key })));
  });

  test("may come without quotes where it has none of the characters that mean something there, and is the same key", () => {
    fc.assert(
      fc.property(keys, (key) => {
        const bare = decideIdempotencyKey([key]);
        if (/[",;\\]/.test(key)) expect(bare.ok && bare.key === key).toBe(false);
        else expect(bare).toEqual(decideIdempotencyKey([quote(key)]));
      }),
    );
  });

  test("whatever is sent is a key of 1 to 255 visible ASCII characters, or refused by a rule", () => {
    const anything = fc.oneof(
      fc.string({ unit: "binary", maxLength: 300 }),
      keys.map((key) => `"${key}"`),
      keys,
    );
    fc.assert(
      fc.property(anything, (text) => {
        const decision = decideIdempotencyKey([text]);
        if (decision.ok) expect(decision.key).toMatch(/^[!-~]{1,255}$/);
        else expect(decision.detail).toMatch(/^must /);
      }),
    );
  });

  test("is missing where no field is sent", () => {
    expect(decideIdempotencyKey([])).toEqual({ ok: true, key: null });
  });

  test.each([
    ["repeated", ["a", "a"]],
    ["repeated", ["", ""]],
    ["empty", [""]],
    ["empty", ['""']],
    ["length", ["k".repeat(256)]],
    ["length", [`"${"k".repeat(256)}"`]],
    ["characters", ["a b"]],
    ["characters", ["a\tb"]],
    ["characters", ['"a b"']],
    ["characters", ["a, b"]],
    ["characters", ["a,b"]],
    ["characters", ['"a", "b"']],
    ["characters", ['"a";p']],
    ["characters", ["a;p"]],
    ["characters", ['"a']],
    ["characters", ['a"']],
    ["characters", ['"a"b"']],
    ["characters", ['"a\\"']],
    ["characters", ['"a\\b"']],
    ["characters", ["a\\b"]],
    ["characters", ["\u00e9"]],
    ["characters", ["a\u0000"]],
    ["characters", ["a\n"]],
    ["characters", ["\u007f"]],
  ])("is refused by the rule %s: %j", (expected, fields) => {
    expect(rule(...fields)).toBe(expected);
  });

  test("of 255 characters that all need an escape is a key", () => {
    expect(rule(quote('"'.repeat(255)))).toBe("accepted");
    expect(rule(quote('"'.repeat(256)))).toBe("length");
  });
});
