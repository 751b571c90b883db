import { describe, expect, test } from "@jest/globals";
import { type LinkRow, makeEntry, resolve } from "./entry.ts";

const times = { loadedAt: { mono: 1000, wall: 5_000_000 }, ttlMs: 60_000 };
const row = (over: Partial<LinkRow> = {}): LinkRow => ({
  target: "https://example.com/?abc#123",
  state: "ACTIVE",
  version: 1,
  remainingMs: null,
  owner: "ann",
  ...over,
});

describe("what a visitor is answered", () => {
  test("is a redirect to the stored bytes", () => {
    const entry = makeEntry("abc", row(), times);
    expect(resolve(entry, Number.MAX_SAFE_INTEGER)).toBe("redirect");
    expect(entry.target).toBe("https://example.com/?abc#123");
  });

  test("is gone at exactly the instant of expiry, counted from before the question was sent", () => {
    const entry = makeEntry("abc", row({ remainingMs: 500 }), times);
    expect(resolve(entry, 1499.999)).toBe("redirect");
    expect(resolve(entry, 1500)).toBe("gone");
  });

  test("is gone when the link had expired before it was read", () => {
    expect(resolve(makeEntry("abc", row({ remainingMs: -1 }), times), 1000)).toBe("gone");
  });

  test("is gone when it was revoked, and holds no target", () => {
    const entry = makeEntry("abc", row({ state: "REVOKED", target: null, version: 2 }), times);
    expect(resolve(entry, 1000)).toBe("gone");
    expect(entry.target).toBe("");
  });

  test("is not found for a code that nobody has", () => {
    expect(resolve(makeEntry("abc", null, times), 1000)).toBe("not-found");
  });
});
