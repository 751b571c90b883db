import { expect, test } from "@jest/globals";
import { median, percentile } from "./numbers.ts";
import { runOpenLoop } from "./open-loop.ts";
import { formatTable } from "./results.ts";

const GRACE_MS = 60_000;
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("a server that stands still is blamed for every request that was due meanwhile", async () => {
  let stoodStill = false;
  const { latencies, failed } = await runOpenLoop({
    rate: 1000,
    seconds: 0.2,
    graceMs: GRACE_MS,
    send: async (index) => {
      if (index === 50 && !stoodStill) {
        stoodStill = true;
        for (const until = performance.now() + 100; performance.now() < until; );
      }
      return true;
    },
  });
  expect([latencies.length, failed]).toEqual([200, 0]);
  // About a hundred were due while nothing moved, and waited 50 ms in the middle; timed from their sending none had waited.
  expect(latencies.filter((ms) => ms > 20).length).toBeGreaterThan(50);
});

test("what is answered badly, fails, or is still under way at the end has failed", async () => {
  const never = new Promise<boolean>(() => {});
  const answers = [Promise.resolve(true), Promise.resolve(false), Promise.reject(new Error("reset")), never];
  const { latencies, failed } = await runOpenLoop({
    rate: 1000,
    seconds: 0.004,
    graceMs: 10,
    send: (index) => answers[index] ?? never,
  });
  await turn();
  expect([latencies.length, failed]).toEqual([1, 3]);
});

test("the share of values below a percentile is what it says", () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
  expect([percentile(hundred, 0.99), median(hundred), percentile([7], 0.999), percentile(hundred, 1)]).toEqual([
    99, 50, 7, 100,
  ]);
  expect(median([])).toBeNaN();
});

test("a table has its columns below one another", () => {
  expect(
    formatTable([
      ["a", "1"],
      ["long", "22"],
    ]),
  ).toBe("a     1\nlong  22");
});
