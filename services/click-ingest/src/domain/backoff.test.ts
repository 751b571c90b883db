import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { backoffMs } from "./backoff.ts";

describe("the wait before another attempt", () => {
  test("doubles from 50 ms and stops at a second", () => {
    expect([1, 2, 3, 4, 5, 6, 7, 1000].map((failures) => backoffMs(failures, 1 - Number.EPSILON))).toEqual(
      [50, 100, 200, 400, 800, 1000, 1000, 1000].map((ms) => expect.closeTo(ms, 6)),
    );
  });

  test("is random in its upper half, whatever the number of failures", () => {
    const failures = fc.integer({ min: 1, max: 1_000_000 });
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(failures, random, (count, share) => {
        const longest = backoffMs(count, 1);
        expect(backoffMs(count, share)).toBeGreaterThanOrEqual(longest / 2);
        expect(backoffMs(count, share)).toBeLessThanOrEqual(longest);
      }),
    );
  });
});
