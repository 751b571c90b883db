import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Entry, makeEntry } from "../domain/entry.ts";
import { createRecentLinks } from "./recent-links.ts";

const times = { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 };
const link = (code: string, length = 20): Entry =>
  makeEntry(code, { target: "x".repeat(length), state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" }, times);

/** What it is to do, written so that it cannot be wrong: an array, oldest first. */
function createModel(maxEntries: number) {
  let kept: Entry[] = [];
  const without = (code: string) => kept.filter((entry) => entry.code !== code);
  return {
    get(code: string): Entry | undefined {
      const found = kept.find((entry) => entry.code === code);
      if (found) kept = [...without(code), found];
      return found;
    },
    set(entry: Entry): void {
      kept = [...without(entry.code), entry].slice(-maxEntries);
    },
    delete(code: string): void {
      kept = without(code);
    },
    clear(): void {
      kept = [];
    },
    size: () => kept.length,
  };
}

const codes = fc.constantFrom("aaa", "bbb", "ccc", "ddd", "eee", "faa", "gaa");
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constantFrom("get" as const, "set" as const), code: codes }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), code: codes }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const), code: codes }) },
  ),
  { maxLength: 60, size: "max" },
);

describe("the links that were used last", () => {
  test("are those that a plain list would keep, whatever is done, and count as it does", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (list, maxEntries) => {
        const [real, model] = [createRecentLinks(maxEntries, 1_000_000), createModel(maxEntries)];
        for (const { do: what, code } of list) {
          if (what === "get") expect(real.get(code)).toBe(model.get(code));
          else if (what === "delete") {
            real.delete(code);
            model.delete(code);
          } else if (what === "clear") {
            real.clear();
            model.clear();
          } else {
            const entry = link(code);
            real.set(entry);
            model.set(entry);
          }
          expect(real.stats().entries).toBe(model.size());
          expect(real.stats().bytes === 0).toBe(model.size() === 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("make room for a long one, as many as it takes, and never keep more bytes than allowed", () => {
    const recent = createRecentLinks(100, 3000);
    for (let n = 0; n < 8; n += 1) recent.set(link(`code${n}`));
    expect(recent.stats().entries).toBe(8);
    recent.set(link("long", 2000));
    expect(recent.stats().bytes).toBeLessThanOrEqual(3000);
    expect([recent.get("long")?.code, recent.get("code0")]).toEqual(["long", undefined]);
    expect(recent.stats().evicted).toBe(9 - recent.stats().entries);
    recent.set(link("huge", 5000));
    expect(recent.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  test("once put out hold nothing of the others: a click that waits keeps its own link alone", () => {
    const recent = createRecentLinks(2, 1_000_000);
    const first = link("aaa");
    for (const entry of [first, link("bbb"), link("ccc")]) recent.set(entry);
    expect([first.newer, first.older]).toEqual([null, null]);
  });

  test("give way one by one when it is full", () => {
    const recent = createRecentLinks(20_000, 1_000_000_000);
    for (let n = 0; n < 60_000; n += 1) recent.set(link(`code${n}`));
    expect(recent.stats()).toMatchObject({ entries: 20_000, evicted: 40_000 });
    expect([recent.get("code39999"), recent.get("code40000")?.code]).toEqual([undefined, "code40000"]);
  });
});
