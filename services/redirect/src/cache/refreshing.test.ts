// Entries that are read anew before their end: how many at a time, and behind whom.
import { describe, expect, test } from "@jest/globals";
import type { LinkRow } from "../domain/entry.ts";
import { createLinkCache } from "./link-cache.ts";
import { createLinkLookup } from "./link-lookup.ts";
import { createLoader } from "./loader.ts";
import { createReadBatches } from "./read-batches.ts";

const TTL = 1000;
/** Within the last fifth of a life, so that whoever asks has the entry read anew. */
const AGEING = 900;
const row = (version: number): LinkRow => ({
  ...{ target: "https://example.com/", state: "ACTIVE", version, remainingMs: null, owner: "ann" },
});

type Statement = { codes: readonly string[]; end: (version?: number) => Promise<void>; fail: () => Promise<void> };

/** The real parts; the test ends statements and turns of the event loop, and moves the clock. */
function createWorld({ maxRefreshes = 2, maxCodes = 3, readsBehind = true } = {}) {
  let mono = 0;
  const now = () => ({ mono, wall: mono });
  const statements: Statement[] = [];
  const turns: (() => void)[] = [];
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  const reads = createReadBatches({
    readMany: (codes) =>
      new Promise((resolve, reject) =>
        statements.push({
          codes,
          end: (version = 1) => {
            resolve(codes.map(() => row(version)));
            return settled();
          },
          fail: () => {
            reject(new Error("away"));
            return settled();
          },
        }),
      ),
    ...{ mayBeOfOneRow: () => false, timeoutMs: 1_000_000, now: () => mono, after: () => {} },
    ...{ soon: (act: () => void) => void turns.push(act), maxStatements: 1, maxCodes },
  });
  const cache = createLinkCache({ maxEntries: 100, maxBytes: 1_000_000 });
  const { read: readLink, readBehind, hasten } = reads;
  const behind = readsBehind ? { readBehind, hasten } : {};
  const loader = createLoader({ cache, readLink, ...behind, ttlMs: TTL, negativeTtlMs: 100, now, random: () => 0 });
  const lookup = createLinkLookup({ cache, loader, ttlMs: TTL, maxRefreshes });
  const turn = () => {
    for (const act of turns.splice(0)) act();
  };
  lookup.synced(now());
  return {
    ...{ statements, reads, lookup, turn },
    find: (...codes: string[]) => codes.map((code) => lookup.find(code, mono, mono)?.version),
    asked: () => statements.map(({ codes }) => codes),
    /** Makes entries and lets them age. */
    async know(...codes: string[]): Promise<void> {
      for (const code of codes) {
        const load = lookup.load(code);
        turn();
        await statements.splice(0)[0]?.end();
        await load;
      }
      mono += AGEING;
      lookup.synced(now());
    },
    advance(ms: number): void {
      mono += ms;
      lookup.synced(now());
    },
  };
}

describe("entries that near their end", () => {
  test("are read anew a few at a time; the others are put off, counted, and left to whoever asks next", async () => {
    const { know, find, turn, asked, statements, lookup } = createWorld();
    await know("aaa", "bbb", "ccc");
    expect(find("aaa", "bbb", "ccc", "aaa")).toEqual([1, 1, 1, 1]);
    turn();
    expect(asked()).toEqual([["aaa", "bbb"]]);
    expect(lookup.stats()).toMatchObject({ refreshes: 2, refreshing: 2, refreshesPutOff: 1 });
    await statements[0]?.end(2);
    expect(find("aaa", "bbb", "ccc")).toEqual([2, 2, 1]);
    turn();
    expect(asked()[1]).toEqual(["ccc"]);
    await statements[1]?.fail();
    expect(lookup.stats()).toMatchObject({ refreshes: 3, refreshing: 0 });
  });

  test("are read anew by whoever asks next where that failed, and serve meanwhile", async () => {
    const { know, find, turn, asked, statements } = createWorld();
    await know("aaa");
    for (const place of [0, 1]) {
      expect(find("aaa")).toEqual([1]);
      turn();
      expect(asked()[place]).toEqual(["aaa"]);
      await statements[place]?.fail();
    }
  });

  test("go behind what visitors wait for, in the room that a statement has beside it", async () => {
    const { know, find, turn, asked, statements, lookup, reads } = createWorld();
    await know("old", "odd");
    find("old", "odd");
    const missed = ["aaa", "bbb", "ccc", "ddd", "eee"].map(lookup.load);
    turn();
    expect(asked()).toEqual([["aaa", "bbb", "ccc"]]);
    expect(reads.stats()).toMatchObject({ waiting: 2, behind: 2 });
    for (const place of [0, 1, 2]) {
      await statements[place]?.end();
      turn();
    }
    await Promise.all(missed);
    expect(asked().slice(1)).toEqual([["ddd", "eee", "old"], ["odd"]]);
    expect(reads.stats()).toMatchObject({ waiting: 0, behind: 0, unanswered: 0 });
  });

  test("control: asked for like all others, they go before a visitor who came later", async () => {
    const { know, find, turn, asked, lookup } = createWorld({ readsBehind: false });
    await know("old", "odd");
    find("old", "odd");
    for (const code of ["aaa", "bbb"]) void lookup.load(code);
    turn();
    expect(asked()).toEqual([["old", "odd", "aaa"]]);
  });

  test("go with the others as soon as a visitor waits for one of them", async () => {
    const { know, find, turn, asked, statements, lookup } = createWorld();
    await know("old", "odd");
    find("old", "odd");
    const waits = lookup.load("odd");
    for (const code of ["aaa", "bbb"]) void lookup.load(code);
    turn();
    expect(asked()).toEqual([["odd", "aaa", "bbb"]]);
    await statements[0]?.end(2);
    expect((await waits).version).toBe(2);
  });

  test("are not joined by who asks after a change was applied: that one is read for itself", async () => {
    const { know, find, turn, asked, statements, lookup } = createWorld();
    await know("aaa");
    find("aaa");
    turn();
    lookup.apply([{ code: "aaa", version: 2, seq: 1 }]);
    const late = lookup.load("aaa");
    await statements[0]?.end(1);
    expect(find("aaa")).toEqual([undefined]);
    turn();
    expect(asked()).toEqual([["aaa"], ["aaa"]]);
    await statements[1]?.end(2);
    expect((await late).version).toBe(2);
  });
});
