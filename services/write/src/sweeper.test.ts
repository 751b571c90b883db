import { expect, test } from "@jest/globals";
import { createSweeper } from "./sweeper.ts";

/** Runs a sweeper over what `sweep` says until `enough` holds. */
async function sweepUntil(sweep: (limit: number) => Promise<number>, enough: (counts: Counts) => boolean) {
  const counts = { removed: 0, failures: 0 };
  const failures: unknown[] = [];
  const options = { intervalMs: 1, batch: 10, maxBatches: 3, onFailure: (error: unknown) => failures.push(error) };
  const sweeper = createSweeper({ ...options, sweep, counts });
  sweeper.start();
  while (!enough(counts)) await new Promise((resolve) => setTimeout(resolve, 1));
  await sweeper.stop();
  return { counts, failures };
}
type Counts = { removed: number; failures: number };

test("removes in batches until there is nothing left, and goes on after a failure", async () => {
  let left = 75;
  let calls = 0;
  const { counts, failures } = await sweepUntil(
    async (limit) => {
      calls += 1;
      if (calls === 2) throw new Error("the database is away");
      const removed = Math.min(limit, left);
      left -= removed;
      return removed;
    },
    ({ removed }) => removed === 75,
  );
  expect(counts).toEqual({ removed: 75, failures: 1 });
  expect(failures).toHaveLength(1);
});

test("a stop waits for the batch under way, and begins no other", async () => {
  let finish = () => {};
  let begun = 0;
  const counts = { removed: 0, failures: 0 };
  const started = new Promise<void>((resolve) => {
    const sweep = () => {
      begun += 1;
      resolve();
      return new Promise<number>((end) => {
        finish = () => end(10);
      });
    };
    const sweeper = createSweeper({ sweep, counts, intervalMs: 1, batch: 10, maxBatches: 9, onFailure: () => {} });
    sweeper.start();
    stop = () => sweeper.stop();
  });
  await started;
  const stopped = stop();
  finish();
  await stopped;
  expect([begun, counts.removed]).toEqual([1, 10]);
});
let stop: () => Promise<void> = async () => {};
