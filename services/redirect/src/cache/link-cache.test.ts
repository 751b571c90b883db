import { describe, expect, test } from "@jest/globals";
import { makeEntry } from "../domain/entry.ts";
import { createLinkCache } from "./link-cache.ts";

const times = { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 };
const link = (code: string, version = 1, target = "https://example.com/") =>
  makeEntry(code, { target, state: "ACTIVE", version, remainingMs: null, owner: "ann" }, times);
const unknown = (code: string) => makeEntry(code, null, times);
const create = (over = {}) => createLinkCache({ maxEntries: 3, maxBytes: 1_000_000, ...over });

describe("the cache", () => {
  test("forgets what was asked for longest ago when it is full", () => {
    const cache = create();
    for (const code of ["aaa", "bbb", "ccc"]) cache.put(link(code));
    cache.get("aaa");
    cache.put(link("ddd"));
    expect(["aaa", "bbb", "ccc", "ddd"].map((code) => cache.get(code)?.code)).toEqual(["aaa", undefined, "ccc", "ddd"]);
  });

  test("is bounded in bytes, too", () => {
    const cache = create({ maxEntries: 1000, maxBytes: 20_000 });
    for (let n = 0; n < 100; n += 1) cache.put(link(`code${n}`, 1, `https://example.com/${"x".repeat(5000)}`));
    expect(cache.stats().bytes).toBeLessThanOrEqual(20_000);
    expect(cache.stats().entries).toBe(3);
  });

  test("never lets unknown codes push out known links", () => {
    const cache = create();
    cache.put(link("known"));
    for (let n = 0; n < 100_000; n += 1) cache.put(unknown(`guess${n}`));
    expect(cache.get("known")?.kind).toBe("active");
    expect(cache.stats().unknown).toBeLessThanOrEqual(65_536);
  });

  test("refuses what is older than a version it has been told of", () => {
    const cache = create();
    cache.invalidate("abc", 2);
    expect(cache.put(link("abc", 1))).toBe(false);
    expect(cache.put(unknown("abc"))).toBe(false);
    expect(cache.get("abc")).toBeUndefined();
    expect(cache.put(link("abc", 2))).toBe(true);
  });

  test("keeps the newest version it was told of, in whatever order it was told", () => {
    const cache = create();
    cache.invalidate("abc", 3);
    cache.invalidate("abc", 2);
    expect(cache.put(link("abc", 2))).toBe(false);
  });

  test("forgets versions with everything else: after a failover the truth may be older", () => {
    const cache = create();
    cache.invalidate("abc", 2);
    cache.clear();
    expect(cache.put(link("abc", 1))).toBe(true);
  });

  test("forgets unknown codes at no cost, so that a flood of hints stops nobody", () => {
    const cache = create();
    for (let n = 0; n < 65_536; n += 1) cache.put(unknown(`guess${n}`));
    // Clearing the map each time would take minutes.
    for (let n = 0; n < 2_000_000; n += 1) cache.forgetUnknown();
    expect(cache.get("guess65535")).toBeUndefined();
  });

  test("forgets that a code was unknown, on a hint and when it becomes known", () => {
    const cache = create();
    cache.put(unknown("abc"));
    cache.put(link("abc"));
    expect(cache.get("abc")?.kind).toBe("active");
    cache.put(unknown("def"));
    cache.forgetUnknown();
    expect(cache.get("def")).toBeUndefined();
    expect(cache.get("abc")?.kind).toBe("active");
  });
});
