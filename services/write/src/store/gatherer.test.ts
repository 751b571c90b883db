import { describe, expect, test } from "@jest/globals";
import { DeadlineExceeded } from "@linkfence/db";
import { createGatherer } from "./gatherer.ts";

/** Work that is ended by the test, piece by piece. */
function createBench({ lanes = 1, maxCalls = 10, timeoutMs = 60_000 } = {}) {
  const pieces: {
    calls: readonly number[];
    end: (answers?: readonly (string | Promise<string>)[]) => void;
    fail: (error: Error) => void;
  }[] = [];
  let elapsedMs = 0;
  const gather = createGatherer<number, string>({
    ...{ lanes, maxCalls, timeoutMs },
    now: () => elapsedMs,
    work: (calls) =>
      new Promise((resolve, reject) => {
        pieces.push({
          calls,
          end: (answers) => resolve(answers ?? calls.map((call) => `answer ${call}`)),
          fail: reject,
        });
      }),
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
  const elapse = (ms: number) => {
    elapsedMs += ms;
  };
  return { gather, pieces, turn, elapse, asked: () => pieces.map(({ calls }) => calls) };
}

describe("calls", () => {
  test("of one turn go together; those that come later wait for a lane, and then go together", async () => {
    const { gather, pieces, turn, asked } = createBench();
    const first = [gather(1), gather(2)];
    await turn();
    const second = [gather(3), gather(4)];
    await turn();
    expect(asked()).toEqual([[1, 2]]);
    pieces[0]?.end();
    expect(await Promise.all(first)).toEqual(["answer 1", "answer 2"]);
    expect(asked()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    pieces[1]?.end();
    expect(await Promise.all(second)).toEqual(["answer 3", "answer 4"]);
  });

  test("never join what began before they came", async () => {
    const { gather, pieces, turn, asked } = createBench({ lanes: 2 });
    const first = gather(1);
    await turn();
    const same = gather(1);
    await turn();
    expect(asked()).toEqual([[1], [1]]);
    for (const { end } of pieces) end();
    await Promise.all([first, same]);
  });

  test("beyond the greatest number wait for the next piece", async () => {
    const { gather, pieces, turn, asked } = createBench({ maxCalls: 2 });
    const all = Promise.all([1, 2, 3, 4, 5].map(gather));
    for (let ended = 0; ended < 3; ended += 1) {
      await turn();
      pieces[ended]?.end();
    }
    expect(await all).toHaveLength(5);
    expect(asked()).toEqual([[1, 2], [3, 4], [5]]);
  });

  test("share a failure, and each its own where there is one; the next ones go on", async () => {
    const { gather, pieces, turn } = createBench();
    const failing = [gather(1), gather(2)];
    await turn();
    pieces[0]?.fail(new Error("all of it"));
    for (const one of failing) await expect(one).rejects.toThrow("all of it");
    const apart = Promise.allSettled([gather(3), gather(4)]);
    await turn();
    pieces[1]?.end(["good", Promise.reject(new Error("its own"))]);
    expect((await apart).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test("that waited too long are refused, and nothing is done for them; those just in time are carried out", async () => {
    const { gather, pieces, turn, elapse, asked } = createBench({ timeoutMs: 10 });
    const first = gather(1);
    await turn();
    const late = gather(2);
    elapse(1);
    const inTime = gather(3);
    elapse(9);
    pieces[0]?.end();
    await first;
    await expect(late).rejects.toThrow(DeadlineExceeded);
    await turn();
    expect(asked()).toEqual([[1], [3]]);
    pieces[1]?.end();
    expect(await inTime).toBe("answer 3");
  });
});
