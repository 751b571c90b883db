import { describe, expect, test } from "@jest/globals";
import { addEnd, NO_ENDS, pauseBefore } from "./restart-policy.ts";

const DIED_UNREADY = { wasReady: false, livedMs: 300 };
const DIED_SOON = { wasReady: true, livedMs: 300 };
const DIED_LATE = { wasReady: true, livedMs: 3_600_000 };
const after = (...ends: { wasReady: boolean; livedMs: number }[]) => ends.reduce(addEnd, NO_ENDS);

describe("a worker that ended", () => {
  test("is started again at once after a long life", () => {
    expect(pauseBefore(after(DIED_LATE), false)).toBe(0);
    expect(pauseBefore(after(DIED_UNREADY, DIED_UNREADY, DIED_LATE), false)).toBe(0);
  });

  test("soon after its start waits longer each time, and never without bound", () => {
    const pauses = Array.from({ length: 100 }, (_, index) =>
      pauseBefore(after(...Array.from({ length: index + 1 }, () => DIED_SOON)), false),
    );
    expect(pauses.slice(0, 4)).toEqual([100, 200, 400, 800]);
    expect(Math.max(...pauses.map(Number))).toBe(5000);
  });

  test("five times in a row before it was ready is given up, unless others serve", () => {
    const four = [DIED_UNREADY, DIED_UNREADY, DIED_UNREADY, DIED_UNREADY];
    expect(pauseBefore(after(...four), false)).not.toBeNull();
    expect(pauseBefore(after(...four, DIED_UNREADY), false)).toBeNull();
    expect(pauseBefore(after(...four, DIED_UNREADY), true)).toBe(1600);
    expect(pauseBefore(after(...four, DIED_SOON, DIED_UNREADY), false)).not.toBeNull();
  });
});
