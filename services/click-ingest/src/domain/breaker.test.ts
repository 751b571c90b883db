import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { afterFailure, type Breaker, CLOSED, waitMs, whileTrying } from "./breaker.ts";

const failed = (times: number, now = 0) =>
  Array.from({ length: times }).reduce<Breaker>((breaker) => afterFailure(breaker, now), CLOSED);

describe("the breaker", () => {
  test("stays closed for what may happen to anybody, and opens for a second with the third failure in a row", () => {
    expect([0, 1, 2, 3].map((times) => waitMs(failed(times), 0))).toEqual([0, 0, 0, 1000]);
  });

  test("opens twice as long with each further failure, and half a minute at the most", () => {
    expect([4, 5, 7, 8, 9, 2000].map((times) => waitMs(failed(times), 0))).toEqual([
      2000, 4000, 16_000, 30_000, 30_000, 30_000,
    ]);
  });

  test("lets one try when its time is over, while the others wait as after another failure", () => {
    const open = failed(3);
    expect(waitMs(open, 999)).toBe(1);
    expect(waitMs(open, 1000)).toBe(0);
    expect(waitMs(whileTrying(open, 1000), 1000)).toBe(2000);
    expect(afterFailure(whileTrying(open, 1000), 1000)).toEqual(afterFailure(open, 1000));
    expect(waitMs(whileTrying(CLOSED, 1000), 1000)).toBe(0);
  });

  test("never keeps anybody waiting for more than half a minute", () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.integer({ min: 0, max: 2 ** 40 }), (times, now) => {
        expect(waitMs(failed(times, now), now)).toBeLessThanOrEqual(30_000);
      }),
      { numRuns: 20 },
    );
  });
});
