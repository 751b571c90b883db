import { expect, test } from "@jest/globals";
import { waitForRest } from "./rest.ts";
import { linkCounts, workerCounts } from "./scale.ts";

test("workers are doubled up to the cores, and links made ten times as many up to what was asked for", () => {
  expect([1, 2, 3, 6, 128].map(workerCounts)).toEqual([[1], [1, 2], [1, 2, 3], [1, 2, 4, 6], [1, 2, 4, 8, 16, 32, 64]]);
  expect(linkCounts(1_000_000)).toEqual([10_000, 100_000, 1_000_000]);
  expect(linkCounts(20_000)).toEqual([10_000, 20_000]);
});

test("a measurement waits until what is behind the servers rests", async () => {
  const told: string[] = [];
  // Far more than there is time for, and then nothing more.
  const used = [0, 1e6, 2e6];
  const looks: number[] = [];
  const look = async () => looks[looks.push(used[looks.length] ?? 2e6) - 1] ?? 0;
  await waitForRest(look, (text) => told.push(text), { lookMs: 1, maxMs: 60_000 });
  expect({ looks, told }).toEqual({ looks: [...used, 2e6], told: [] });
});

test("it waits no longer than it may, and says so", async () => {
  const told: string[] = [];
  const used = [0, 1e6, 2e6];
  await waitForRest(
    async () => used.shift() ?? 0,
    (text) => told.push(text),
    { lookMs: 1, maxMs: 0 },
  );
  expect(told).toEqual([expect.stringContaining("still takes")]);
  expect(used).toEqual([2e6]);
});

test("nobody is waited for where the system does not tell", async () => {
  const told: string[] = [];
  await waitForRest(
    async () => Number.NaN,
    (text) => told.push(text),
    { lookMs: 1, maxMs: 60_000 },
  );
  expect(told).toEqual([]);
});
