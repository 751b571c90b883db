import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { SAMPLE_AT, sampleClick } from "../test-support/sample-clicks.ts";
import { cleanClick, cleanText, clickBytes, findFault, idTimeMs, reasonOfField } from "./click.ts";

/** Every UTF-16 unit, lone surrogates and NUL among them. */
const anyText = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.string({ unit: fc.constantFrom("\0", "\ud800", "\udc00", "a", "é", "\u{1f600}", "\ufffd") }),
);
const characters = (text: string) => [...text].length;

describe("a visitor's text", () => {
  test("becomes storable: no NUL, no lone surrogate, and UTF-8 gives it back", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const clean = cleanText(text);
        expect(clean).not.toContain("\0");
        expect(Buffer.from(clean, "utf8").toString("utf8")).toBe(clean);
      }),
    );
  });

  test("keeps its number of characters, so that a text within the limit stays within it", () => {
    fc.assert(fc.property(anyText, (text) => expect(characters(cleanText(text))).toBe(characters(text))));
  });

  test("is left alone where it was storable, so that cleaning twice is cleaning once", () => {
    fc.assert(fc.property(anyText, (text) => expect(cleanText(cleanText(text))).toBe(cleanText(text))));
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
        (text) => {
          expect(cleanText(text)).toBe(text);
        },
      ),
    );
  });

  test("is cleaned in both fields of a click, and nothing else of it changes", () => {
    const click = sampleClick({ referrerHost: "a\0b", userAgent: "x\ud800y" });
    expect(cleanClick(click)).toEqual({ ...click, referrerHost: "a\ufffdb", userAgent: "x\ufffdy" });
    const bare = sampleClick({ referrerHost: null, userAgent: null });
    expect(cleanClick(bare)).toEqual(bare);
  });
});

describe("a click of the right shape", () => {
  test("is good when its id carries its time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (at) => {
        const click = sampleClick({ at });
        expect(idTimeMs(click.id)).toBe(at);
        expect(findFault(click, at)).toBeUndefined();
      }),
    );
  });

  test("is refused when the two differ by a millisecond", () => {
    const click = sampleClick();
    expect(findFault({ ...click, at: click.at + 1 }, click.at)).toBe("id-time");
    expect(findFault({ ...click, at: click.at - 1 }, click.at)).toBe("id-time");
  });

  test("is refused when its day is after the next one, whatever the hour", () => {
    const day = 86_400_000;
    const hour = fc.integer({ min: 0, max: day - 1 });
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 40_000 }), hour, hour, (today, at, now) => {
        const faultOn = (days: number) => findFault(sampleClick({ at: (today + days) * day + at }), today * day + now);
        expect([-1, 0, 1, 2, 3].map(faultOn)).toEqual([undefined, undefined, undefined, "id-time", "id-time"]);
      }),
    );
  });

  test("is refused when its version is no number that can be stored exactly", () => {
    expect(findFault(sampleClick({ version: 2 ** 53 }), SAMPLE_AT)).toBe("version");
    expect(findFault(sampleClick({ version: 1e300 }), SAMPLE_AT)).toBe("version");
    expect(findFault(sampleClick({ version: 2 ** 53 - 1 }), SAMPLE_AT)).toBeUndefined();
  });

  test("takes more memory the longer its texts are, and some without any", () => {
    const bare = clickBytes(sampleClick({ referrerHost: null, userAgent: null }));
    expect(bare).toBeGreaterThan(0);
    expect(clickBytes(sampleClick({ referrerHost: "ab", userAgent: "abc", owner: "abcd" }))).toBe(bare + 18);
  });
});

describe("the reason of a dead letter", () => {
  test.each([
    ["id", "pattern", "id"],
    ["referrerHost", "maxLength", "referrer-host"],
    ["userAgent", "type", "user-agent"],
    ["prefetch", "type", "prefetch"],
    ["country", "pattern", "country"],
    ["owner", "minLength", "owner"],
    ["id", "required", "shape"],
    ["extra", "additionalProperties", "shape"],
    ["body", "type", "shape"],
  ])("of field %s by rule %s is %s", (field, rule, reason) => {
    expect(reasonOfField(field, rule)).toBe(reason);
  });
});
