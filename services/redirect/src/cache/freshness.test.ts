import { describe, expect, test } from "@jest/globals";
import { makeEntry } from "../domain/entry.ts";
import { isAgeing, isServable } from "./freshness.ts";

const TTL = 1000;
const row = { target: "https://example.com/", state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" } as const;
const entry = makeEntry("abc", row, { loadedAt: { mono: 0, wall: 50_000 }, ttlMs: TTL });
const synced = (mono: number) => ({ mono, wall: 50_000 + mono });

describe("an entry", () => {
  test.each([
    ["right after it was loaded and synced", 1, 1, 0, true],
    ["at the last instant of its life", 999.9, 999.9, 0, true],
    ["at the end of its life", 1000, 1000, 999, false],
    ["when the log was read too long ago", 500, 500, -500, false],
    ["when the machine slept: only the wall clock went on", 10, 2000, 0, false],
    ["when the wall clock was set back an hour", 500, 500 - 3_600_000, 0, true],
    ["when the wall clock was set back, and its life is over", 1000, 1000 - 3_600_000, 999, false],
  ])("%s is servable: %s", (_when, mono, wall, syncMono, servable) => {
    expect(isServable(entry, mono as number, 50_000 + (wall as number), synced(syncMono as number))).toBe(servable);
  });

  test("is not servable before the first sync: nobody waits for a process that is not registered yet", () => {
    const never = { mono: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
    expect(isServable(entry, 1, 50_001, never)).toBe(false);
  });

  test("of an unknown code needs no feed, and lives its own short life", () => {
    const unknown = makeEntry("abc", null, { loadedAt: { mono: 0, wall: 50_000 }, ttlMs: 10 });
    expect(isServable(unknown, 9, 50_009, synced(-5000))).toBe(true);
    expect(isServable(unknown, 10, 50_010, synced(9))).toBe(false);
  });

  test("is asked anew in the last fifth of its life", () => {
    expect([isAgeing(entry, 799), isAgeing(entry, 800)]).toEqual([false, true]);
  });
});

describe("control: a fence by timer", () => {
  test("lets a process that was stopped serve what it had, since its timer has not fired yet", () => {
    let fenced = false;
    const timerFence = () => {
      fenced = true;
    };
    const firesAt = TTL;
    // The process sleeps from 10 to 5000; on waking, a request is handled before the timer queue is looked at.
    const request = { mono: 5000, wall: 55_000 };
    const servedByTimer = !fenced;
    if (request.mono >= firesAt) timerFence();
    expect(servedByTimer).toBe(true);
    expect(isServable(entry, request.mono, request.wall, synced(0))).toBe(false);
  });
});
