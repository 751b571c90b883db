import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Change, judgePage, type Page, type Position, readFrom } from "./cursor.ts";

const change = (seq: number, code = `c${seq}`, version = 2): Change => ({ seq, code, version });
const page = (changes: Change[], over: Partial<Page> = {}): Page => ({
  epoch: "e1",
  head: 0,
  changes,
  limit: 3,
  ...over,
});
const at = (last: Change | null): Position => ({ epoch: "e1", last });

describe("a page of the log", () => {
  test("without a position is where the reader takes its stand; nothing of it is applied", () => {
    expect(judgePage(null, page([change(9)]))).toEqual({
      kind: "apply",
      fresh: [],
      position: at(change(9)),
      complete: true,
    });
    expect(judgePage(null, page([]))).toEqual({ kind: "apply", fresh: [], position: at(null), complete: true });
  });

  test("that begins with the remembered row brings what follows it", () => {
    expect(judgePage(at(change(5)), page([change(5), change(8)]))).toEqual({
      kind: "apply",
      fresh: [change(8)],
      position: at(change(8)),
      complete: true,
    });
  });

  test("that is full is not complete: more may follow", () => {
    expect(judgePage(at(change(1)), page([change(1), change(2), change(3)]))).toMatchObject({ complete: false });
  });

  test("into a log that had no row brings all of it, if it goes back to the first number", () => {
    expect(judgePage(at(null), page([change(1), change(2)]))).toMatchObject({ fresh: [change(1), change(2)] });
    expect(judgePage(at(null), page([change(2)]))).toEqual({ kind: "flush", cause: "trimmed" });
  });

  test.each([
    ["epoch-changed", page([change(5)], { epoch: "e2" })],
    ["went-back", page([])],
    ["trimmed", page([change(6)])],
    ["diverged", page([change(5, "other")])],
    ["diverged", page([change(5, "c5", 3)])],
    ["disordered", page([change(5), change(5)])],
    ["disordered", page([change(5), change(4)])],
  ])("means %s, and with it that nothing cached can be trusted", (cause, read) => {
    expect(judgePage(at(change(5)), read)).toEqual({ kind: "flush", cause });
  });

  test("is asked for from the remembered row on, itself included", () => {
    expect([readFrom(null), readFrom(at(null)), readFrom(at(change(5)))]).toEqual([null, 0, 5]);
  });
});

/** A log from its first row on, with gaps, as sequences leave them. */
const logs = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom("aaa", "bbb", "ccc")), { maxLength: 30 })
  .map((steps) => {
    let seq = 0;
    return steps.map(([gap, code], index) => {
      seq += index === 0 ? 1 : gap;
      return change(seq, code);
    });
  });

/** Reads as the database does: from a row on, at most `limit` of them, of what was committed by then. */
const readLog = (log: readonly Change[], from: number | null, limit: number): Page => {
  const rows = from === null ? log.slice(-1) : log.filter(({ seq }) => seq >= from).slice(0, limit);
  return { epoch: "e1", head: log.at(-1)?.seq ?? 0, changes: rows, limit };
};

describe("a reader of the log", () => {
  test("applies every change after its start exactly once and in order, however the log grows between reads", () => {
    fc.assert(
      fc.property(logs, fc.array(fc.nat(30)), fc.integer({ min: 2, max: 5 }), (log, growth, limit) => {
        const sizes = [...growth.map((size) => Math.min(size, log.length)).sort((a, b) => a - b), log.length];
        let position: Position | null = null;
        const start = log.slice(0, sizes[0]);
        const applied: Change[] = [];
        for (const size of sizes) {
          for (let complete = false; !complete; ) {
            const verdict = judgePage(position, readLog(log.slice(0, size), readFrom(position), limit));
            if (verdict.kind === "flush") throw new Error(verdict.cause);
            applied.push(...verdict.fresh);
            position = verdict.position;
            complete = verdict.complete;
          }
        }
        expect(applied).toEqual(log.slice(start.length));
      }),
    );
  });

  test("notices any other history behind its position, at its next read", () => {
    fc.assert(
      fc.property(logs, logs, (mine, theirs) => {
        const last = mine.at(-1);
        if (!last) return;
        const verdict = judgePage(at(last), readLog(theirs, last.seq, 100));
        const same = theirs.find(({ seq }) => seq === last.seq);
        const agrees = same !== undefined && same.code === last.code && same.version === last.version;
        expect(verdict.kind).toBe(agrees ? "apply" : "flush");
      }),
    );
  });

  test("control: reading past the cursor alone does not notice that a number was given out twice", () => {
    const before = [change(1), change(2, "lost")];
    const after = [change(1), change(2, "other"), change(3)];
    const cursor = before.at(-1)?.seq ?? 0;
    const naive = after.filter(({ seq }) => seq > cursor);
    expect(naive.map(({ code }) => code)).not.toContain("other");
    expect(judgePage(at(change(2, "lost")), readLog(after, cursor, 100))).toEqual({ kind: "flush", cause: "diverged" });
  });
});
