import { describe, expect, test } from "@jest/globals";
import { DeadlineExceeded, PoolOverloaded } from "@linkfence/db";
import type { LinkRow } from "../domain/entry.ts";
import { createReadBatches, type ReadBatchesOptions } from "./read-batches.ts";

const row = (code: string): LinkRow => ({
  ...{ target: `https://example.com/${code}`, state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" },
});
const targets = (rows: readonly (LinkRow | null)[]) => rows.map((one) => one?.target ?? null);

type Statement = {
  codes: readonly string[];
  leftMs: number;
  end: (answers?: readonly (LinkRow | null | Error)[]) => Promise<void>;
  fail: (error: Error) => Promise<void>;
};

/** Statements that the test ends, and a clock that it moves. Turns of the event loop are its own as well. */
function createWorld(over: Partial<ReadBatchesOptions> = {}) {
  const statements: Statement[] = [];
  const timers: { at: number; act: () => void }[] = [];
  const turns: (() => void)[] = [];
  let mono = 0;
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  const reads = createReadBatches({
    readMany: (codes, leftMs) =>
      new Promise((resolve, reject) => {
        const end: Statement["end"] = (answers = codes.map(row)) => {
          resolve(answers);
          return settled();
        };
        const fail: Statement["fail"] = (error) => {
          reject(error);
          return settled();
        };
        statements.push({ codes, leftMs, end, fail });
      }),
    mayBeOfOneRow: (error) => error instanceof RangeError,
    timeoutMs: 1000,
    now: () => mono,
    after: (ms, act) => void timers.push({ at: mono + ms, act }),
    soon: (act) => void turns.push(act),
    maxStatements: 1,
    ...over,
  });
  return {
    statements,
    reads,
    read: (...codes: string[]) => Promise.all(codes.map(reads.read)),
    asked: () => statements.map(({ codes }) => codes),
    turn: () => {
      for (const act of turns.splice(0)) act();
    },
    advance(ms: number): void {
      mono += ms;
      for (const timer of timers.splice(0)) {
        if (timer.at <= mono) timer.act();
        else timers.push(timer);
      }
    },
    timers,
  };
}

describe("reads", () => {
  test("of one turn are asked together; those that come meanwhile wait, and then go together", async () => {
    const { read, turn, asked, statements } = createWorld();
    const first = read("aaa", "bbb");
    turn();
    const second = Promise.all([read("ccc"), read("ddd")]);
    turn();
    expect(asked()).toEqual([["aaa", "bbb"]]);
    await statements[0]?.end();
    turn();
    expect(asked()).toEqual([
      ["aaa", "bbb"],
      ["ccc", "ddd"],
    ]);
    await statements[1]?.end([null, row("ddd")]);
    expect(targets(await first)).toEqual(["https://example.com/aaa", "https://example.com/bbb"]);
    expect((await second).map(targets)).toEqual([[null], ["https://example.com/ddd"]]);
  });

  test("never join a statement that was sent before they came, be it one for the same code", async () => {
    const { read, turn, asked, statements } = createWorld({ maxStatements: 2 });
    const early = read("aaa");
    turn();
    const late = read("aaa");
    turn();
    expect(asked()).toEqual([["aaa"], ["aaa"]]);
    await statements[1]?.end([null]);
    await statements[0]?.end();
    expect([...targets(await early), ...targets(await late)]).toEqual(["https://example.com/aaa", null]);
  });

  test("beyond the greatest batch go with the next statements, of which there are never more than are allowed", async () => {
    const { read, turn, asked, statements, reads } = createWorld({ maxCodes: 2, maxStatements: 2 });
    const all = read("aaa", "bbb", "ccc", "ddd", "eee");
    turn();
    expect(asked()).toEqual([
      ["aaa", "bbb"],
      ["ccc", "ddd"],
    ]);
    expect(reads.stats()).toMatchObject({ waiting: 1, sent: 2, unanswered: 5 });
    await statements[1]?.end();
    turn();
    expect(asked()[2]).toEqual(["eee"]);
    for (const place of [0, 2]) await statements[place]?.end();
    expect(targets(await all)).toHaveLength(5);
    expect(reads.stats()).toMatchObject({ waiting: 0, sent: 0, unanswered: 0, statements: 3 });
  });

  test("beyond those that may wait are refused at once, and counted, until some were answered", async () => {
    const { read, turn, statements, reads } = createWorld({ maxWaiting: 2 });
    const two = read("aaa", "bbb");
    await expect(reads.read("ccc")).rejects.toThrow(PoolOverloaded);
    expect(reads.stats().refused).toBe(1);
    turn();
    await statements[0]?.end();
    await two;
    const third = read("ccc");
    turn();
    await statements[1]?.end();
    expect(targets(await third)).toEqual(["https://example.com/ccc"]);
  });

  test("share the failure of a database that is away; the next ones are sent", async () => {
    const { read, turn, statements, asked } = createWorld();
    const both = Promise.allSettled([read("aaa"), read("bbb")]);
    turn();
    await statements[0]?.fail(new Error("away"));
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const next = read("ccc");
    turn();
    expect(asked()).toHaveLength(2);
    await statements[1]?.end();
    await next;
  });

  test("are told each what is wrong with its own row", async () => {
    const { read, turn, statements } = createWorld();
    const both = Promise.allSettled([read("aaa"), read("bbb")]);
    turn();
    await statements[0]?.end([new Error("its own"), row("bbb")]);
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  });

  test("that are answered with too little are refused, not left waiting", async () => {
    const { read, turn, statements } = createWorld();
    const both = Promise.allSettled([read("aaa"), read("bbb")]);
    turn();
    await statements[0]?.end([row("aaa")]);
    expect((await both).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test.each([0, 3, 7])(
    "whose row spoils the statement (%s of 8) are found in halves, and all others answered",
    async (bad) => {
      const codes = Array.from({ length: 8 }, (_, n) => `code${n}`);
      const { reads, turn, statements } = createWorld();
      const all = Promise.allSettled(codes.map(reads.read));
      turn();
      for (let place = 0; place < statements.length; place += 1) {
        const { codes: asked, fail, end } = statements[place] as Statement;
        if (asked.includes(`code${bad}`)) await fail(new RangeError("a value that cannot be read"));
        else await end();
      }
      expect((await all).flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([bad]);
      // A statement and its halves down to the one row: twice the length of that way, less the first.
      expect(reads.stats()).toMatchObject({ statements: 7, split: 3, unanswered: 0 });
    },
  );
});

describe("the deadline of a read", () => {
  test("is its own: of one statement, those that came first are given up first, and the last one decides for the statement", async () => {
    const { read, turn, advance, statements, reads } = createWorld();
    const first = read("aaa").catch((error: unknown) => error);
    advance(400);
    const second = read("bbb");
    turn();
    expect(statements[0]?.leftMs).toBe(1000);
    advance(600);
    expect(await first).toBeInstanceOf(DeadlineExceeded);
    advance(399);
    await statements[0]?.end();
    expect(targets(await second)).toEqual(["https://example.com/bbb"]);
    expect(reads.stats()).toMatchObject({ givenUp: 1, unanswered: 0 });
  });

  test("counts from when it came: who waited behind another statement is given up unsent, and never asked for", async () => {
    const { read, turn, advance, statements, asked, reads } = createWorld();
    const stuck = read("aaa").catch((error: unknown) => error);
    turn();
    advance(1);
    const late = read("bbb").catch((error: unknown) => error);
    advance(900);
    const inTime = read("ccc");
    advance(100);
    expect([await stuck, await late]).toEqual([expect.any(DeadlineExceeded), expect.any(DeadlineExceeded)]);
    await statements[0]?.fail(new DeadlineExceeded(1000));
    turn();
    expect(asked()).toEqual([["aaa"], ["ccc"]]);
    expect(statements[1]?.leftMs).toBe(900);
    await statements[1]?.end();
    await inTime;
    expect(reads.stats()).toMatchObject({ unanswered: 0, waiting: 0, sent: 0 });
  });

  test("is kept by one timer, however many wait, and by none when nobody does", async () => {
    const { read, turn, advance, statements, timers } = createWorld();
    const all = read("aaa", "bbb", "ccc");
    expect(timers).toHaveLength(1);
    turn();
    await statements[0]?.end();
    await all;
    advance(1000);
    expect(timers).toHaveLength(0);
  });

  test("is kept although an answer comes after it", async () => {
    const { read, turn, advance, statements } = createWorld();
    const late = read("aaa").catch((error: unknown) => error);
    turn();
    advance(1000);
    await statements[0]?.end();
    expect(await late).toBeInstanceOf(DeadlineExceeded);
  });
});
