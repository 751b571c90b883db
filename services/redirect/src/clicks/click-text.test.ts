import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { type ClickFacts, makeClick } from "../domain/click.ts";
import { createClickText } from "./click-text.ts";

const TEXT = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("", '"', "\\", "\0", "\u2028", "\ud800", "\u00e9", "u".repeat(511), "u".repeat(512), "u".repeat(900)),
);
const FACTS: fc.Arbitrary<ClickFacts> = fc.record({
  code: fc.stringMatching(/^[A-Za-z0-9_-]{3,32}$/),
  version: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  at: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  referrer: fc.option(fc.oneof(TEXT, fc.webUrl()), { nil: undefined }),
  userAgent: fc.option(TEXT, { nil: undefined }),
  owner: fc.option(TEXT),
  prefetch: fc.boolean(),
  origin: fc.option(fc.oneof(TEXT, fc.constantFrom("DE", "us", "XX", "192.0.2.1")), { nil: undefined }),
});
const lookUp = (address: string) => (address.startsWith("192.") ? "NZ" : undefined);

test("the text of a click is to the letter what JSON makes of it, also of texts that came before", () => {
  fc.assert(
    fc.property(fc.array(FACTS, { minLength: 1, maxLength: 10 }), (list) => {
      const clickText = createClickText(lookUp);
      for (const facts of [...list, ...list])
        expect(clickText("id", facts)).toBe(JSON.stringify(makeClick("id", facts, lookUp)));
    }),
  );
});

test("more texts than are remembered change nothing", () => {
  const clickText = createClickText(lookUp);
  const facts = {
    code: "abc",
    version: 1,
    at: 1,
    referrer: undefined,
    owner: null,
    prefetch: false,
    origin: undefined,
  };
  for (const round of [1, 2])
    for (let n = 0; n < 2500; n += 1) {
      const userAgent = `agent ${n} "${round % 2 === 0 ? "" : "x"}"`;
      expect(JSON.parse(clickText("id", { ...facts, userAgent })).userAgent).toBe(userAgent);
    }
});
