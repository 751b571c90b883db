import { describe, expect, test } from "@jest/globals";
import { createKeyUsage } from "./key-usage.ts";

/** A keeper whose statements the test ends by hand. */
function createScene({ maxPending = 3 } = {}) {
  const counts = { written: 0, dropped: 0, failures: 0 };
  const failures: unknown[] = [];
  const statements: { ids: string[]; end: (written: number) => void; fail: (error: unknown) => void }[] = [];
  let begun = () => {};
  const usage = createKeyUsage({
    touch: (ids) =>
      new Promise((end, fail) => {
        statements.push({ ids, end, fail });
        begun();
      }),
    counts,
    pauseMs: 1,
    maxPending,
    onFailure: (error) => failures.push(error),
  });
  /** Resolves with the statement of that number, once it was begun. */
  async function statement(number: number) {
    while (statements.length < number) {
      await new Promise<void>((resolve) => {
        begun = resolve;
      });
    }
    const found = statements[number - 1];
    if (!found) throw new Error("unreachable");
    return found;
  }
  return { usage, counts, failures, statements, statement };
}

describe("the last use of keys", () => {
  test("is written by one statement at a time, with all keys that were used in the meantime, each once", async () => {
    const { usage, counts, statements, statement } = createScene();
    usage.note("a");
    for (const id of ["b", "c", "b", "a"]) usage.note(id);
    expect(statements.map(({ ids }) => ids)).toEqual([["a"]]);
    (await statement(1)).end(1);
    const second = await statement(2);
    expect(second.ids).toEqual(["b", "c", "a"]);
    second.end(2);
    await usage.stop();
    expect([counts.written, statements.length, usage.pending()]).toEqual([3, 2, 0]);
  });

  test("that finds no room is dropped and counted, while those that have room stay", async () => {
    const { usage, counts, statement } = createScene({ maxPending: 2 });
    usage.note("first");
    for (const id of ["a", "b", "c", "a", "d"]) usage.note(id);
    expect([usage.pending(), counts.dropped]).toEqual([2, 2]);
    (await statement(1)).end(1);
    const second = await statement(2);
    expect(second.ids).toEqual(["a", "b"]);
    second.end(2);
    await usage.stop();
  });

  test("that cannot be written is counted and told, and the next one is written", async () => {
    const { usage, counts, failures, statement } = createScene();
    const error = new Error("read-only");
    usage.note("a");
    (await statement(1)).fail(error);
    usage.note("b");
    (await statement(2)).end(1);
    await usage.stop();
    expect([counts, failures]).toEqual([{ written: 1, dropped: 0, failures: 1 }, [error]]);
  });

  test("is written once more by a stop, which waits for the statement under way and ends even if that fails", async () => {
    const { usage, counts, statement, statements } = createScene();
    usage.note("a");
    usage.note("b");
    const stopped = usage.stop();
    (await statement(1)).end(1);
    const last = await statement(2);
    expect(last.ids).toEqual(["b"]);
    last.fail(new Error("gone"));
    await stopped;
    await usage.stop();
    expect([counts.written, counts.failures, statements.length]).toEqual([1, 1, 2]);
  });
});
