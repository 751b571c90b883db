import { describe, expect, jest, test } from "@jest/globals";
import { createGiveWay } from "./give-way.ts";

describe("a writer", () => {
  test("goes on at once while nobody waits", () => {
    const { giveWay, stats } = createGiveWay(
      () => false,
      () => 0,
    );
    expect([giveWay(), giveWay()]).toEqual([undefined, undefined]);
    expect(stats().pauses).toBe(0);
  });

  test("rests for nineteen times as long as it worked while others wait, 60 ms at the least and 100 at the most", async () => {
    jest.useFakeTimers();
    try {
      let clock = 0;
      const { giveWay, stats } = createGiveWay(
        () => true,
        () => clock,
      );
      for (const [worked, rest] of [
        [4, 76],
        [0.01, 60],
        [50, 100],
      ] as const) {
        clock += worked;
        let rested = false;
        const resting = giveWay()?.then(() => {
          rested = true;
        });
        await jest.advanceTimersByTimeAsync(rest - 1);
        expect(rested).toBe(false);
        clock += rest;
        await jest.advanceTimersByTimeAsync(1);
        await resting;
        expect(rested).toBe(true);
      }
      expect(stats().pauses).toBe(3);
    } finally {
      jest.useRealTimers();
    }
  });
});
