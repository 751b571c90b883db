import { expect, test } from "@jest/globals";
import { createWaitingRoom } from "./waiting-room.ts";

/** Work that ends when it is told to. */
function createWork() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { end, run: () => ended.then(() => "done") };
}

const LONG_MS = 60_000;

test("as many as there are places are at work, the others follow in the order of their coming", async () => {
  const room = createWaitingRoom(2);
  const works = [createWork(), createWork(), createWork(), createWork()];
  const begun: number[] = [];
  const results = works.map((work, n) =>
    room.run(LONG_MS, () => {
      begun.push(n);
      return work.run();
    }),
  );
  await Promise.resolve();
  expect([begun, room.stats()]).toEqual([[0, 1], { inside: 2, waiting: 2 }]);
  works[1]?.end();
  await results[1];
  expect(begun).toEqual([0, 1, 2]);
  for (const work of works) work.end();
  expect(await Promise.all(results)).toEqual(Array(4).fill("done"));
  expect([begun, room.stats()]).toEqual([[0, 1, 2, 3], { inside: 0, waiting: 0 }]);
});

test("who finds no place in time is told so, and work that fails leaves its place", async () => {
  const room = createWaitingRoom(1);
  const first = createWork();
  const result = room.run(LONG_MS, first.run);
  expect(await room.run(1, () => Promise.resolve("never"))).toBeUndefined();
  expect(room.stats()).toEqual({ inside: 1, waiting: 0 });
  first.end();
  await result;
  await expect(room.run(LONG_MS, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(room.stats()).toEqual({ inside: 0, waiting: 0 });
});

test("what is left of the time is told to the work", async () => {
  const room = createWaitingRoom(1);
  const left = await room.run(LONG_MS, (leftMs) => Promise.resolve(leftMs));
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(LONG_MS);
});

test("a room without places lets nobody in", async () => {
  const room = createWaitingRoom(0);
  expect(await room.run(1, () => Promise.resolve("never"))).toBeUndefined();
  expect(room.stats()).toEqual({ inside: 0, waiting: 0 });
});
