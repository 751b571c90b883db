import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type ClickFacts, makeClick } from "../domain/click.ts";
import { makeEntry } from "../domain/entry.ts";
import { readVisitor } from "../domain/visitor.ts";
import { createClickRing } from "./click-ring.ts";

const row = { target: "https://example.com/", state: "ACTIVE", version: 3, remainingMs: null, owner: "ann" } as const;
const entry = makeEntry("abc", row, { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 });
const nobody = { referrer: undefined, userAgent: undefined, prefetch: false };
const push = (ring: ReturnType<typeof createClickRing>, at: number) => ring.push(entry, at, nobody);
const unknown = () => undefined;

describe("the ring", () => {
  test("keeps clicks in order over any number of turns, and drops exactly what does not fit", () => {
    const moves = fc.array(fc.oneof(fc.constant("push" as const), fc.integer({ min: 1, max: 5 })), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), moves, (capacity, list) => {
        const ring = createClickRing(capacity);
        const model: number[] = [];
        let dropped = 0;
        let at = 0;
        for (const move of list) {
          if (move !== "push") {
            expect(ring.take(move).map((facts) => facts.at)).toEqual(model.splice(0, move));
            continue;
          }
          at += 1;
          push(ring, at);
          if (model.length < capacity) model.push(at);
          else dropped += 1;
        }
        expect(ring.stats()).toEqual({ accepted: at, droppedFull: dropped, waiting: model.length });
      }),
    );
  });

  test("keeps a bounded part of what the visitor sent", () => {
    const ring = createClickRing(4);
    const referrer = `https://ref.example/${"a".repeat(8000)}`;
    ring.push(entry, 1, { referrer, userAgent: "u".repeat(8000), prefetch: true }, "1".repeat(8000));
    const [facts] = ring.take(1);
    expect([facts?.referrer?.length, facts?.userAgent?.length, facts?.origin?.length]).toEqual([1024, 512, 64]);
    const told = { code: "abc", version: 3, owner: "ann", prefetch: true, referrerHost: "ref.example" };
    expect(facts && makeClick("id", facts, unknown)).toMatchObject(told);
  });
});

const facts: ClickFacts = { code: "abc", version: 1, at: 1, ...nobody, origin: undefined, owner: null };

describe("a click", () => {
  test.each([
    ["https://user:pw@Ref.example:8080/path?secret=1", "ref.example"],
    ["https://bücher.example/", "xn--bcher-kva.example"],
    ["not a url", null],
    ["data:text/html,x", null],
    ["", null],
  ])("keeps of the referrer %p the host alone: %p", (referrer, host) => {
    expect(makeClick("id", { ...facts, referrer }, unknown)).toEqual({
      id: "id",
      code: "abc",
      version: 1,
      at: 1,
      referrerHost: host,
      userAgent: null,
    });
  });

  test.each([
    ["DE", "DE"],
    ["de", "DE"],
    ["XX", undefined],
    ["T1", undefined],
    ["192.0.2.1", "NZ"],
    ["2001:db8::1", "NZ"],
    ["", undefined],
  ])("keeps of the origin %p the country alone: %p", (origin, country) => {
    const lookUp = (address: string) => (/[.:]/.test(address) ? "NZ" : undefined);
    const click = makeClick("id", { ...facts, origin }, lookUp);
    expect(click.country).toBe(country);
    expect(JSON.stringify(click)).not.toMatch(/192\.0|2001/);
  });

  test.each(["nz", "NZL", "", "N1"])("takes no country %p from a file", (told) => {
    expect(makeClick("id", { ...facts, origin: "192.0.2.1" }, () => told).country).toBeUndefined();
  });
});

test.each([
  [{ "sec-purpose": "prefetch" }, true],
  [{ "sec-purpose": "prefetch;prerender" }, true],
  [{ purpose: "prefetch" }, true],
  [{ purpose: "preview" }, true],
  [{ "x-moz": "Prefetch" }, true],
  [{ "x-purpose": "preview" }, true],
  [{}, false],
  [{ "sec-purpose": "" }, false],
  [{ purpose: "navigation" }, false],
  [{ "user-agent": "prefetch" }, false],
])("a request with %j only fetches ahead: %p", (fields, expected) => {
  const raw = Object.entries(fields).flat();
  expect(readVisitor(raw).prefetch).toBe(expected);
  const upper = Object.entries(fields).flatMap(([name, value]) => [name.toUpperCase(), value]);
  expect(readVisitor(["Host", "a.example", ...upper, "X-Empty", ""]).prefetch).toBe(expected);
});

test("of fields named alike the first one counts, and any that says so for fetching ahead", () => {
  const raw = "Referer|https://a.example/|referer|https://b.example/|USER-AGENT|one|User-Agent|two".split("|");
  expect(readVisitor(raw)).toEqual({ referrer: "https://a.example/", userAgent: "one", prefetch: false });
  expect(readVisitor(["Purpose", "x", "Sec-Purpose", "", "purpose", "prefetch"]).prefetch).toBe(true);
  expect(readVisitor([])).toEqual({ referrer: undefined, userAgent: undefined, prefetch: false });
});
