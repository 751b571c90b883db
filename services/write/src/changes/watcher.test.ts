import { describe, expect, test } from "@jest/globals";
import { createCounts } from "../counts.ts";
import type { Glance } from "../store/changes.ts";
import type { ChangeStream } from "./stream.ts";
import { createWatcher } from "./watcher.ts";

/** A stream that notes what it is told. */
function createFake(keyId: string, owner = "ann") {
  const told: (number | string)[] = [];
  const stream: ChangeStream = {
    author: { owner, keyId },
    advance: (head) => void told.push(head),
    end: (why) => void told.push(why),
  };
  return { stream, told };
}

function setUp(glance: (keyIds: readonly string[]) => Promise<Glance>) {
  const counts = createCounts().changes;
  const troubles: unknown[] = [];
  const watcher = createWatcher({
    glance,
    everyMs: 1,
    scope: "links:read",
    counts,
    onTrouble: (cause) => troubles.push(cause),
  });
  return { watcher, counts, troubles };
}
const key = (id: string, owner = "ann", scopes = ["links:read"]) => ({ id, owner, scopes });
const turn = () => new Promise(setImmediate);

describe("the watch over the log", () => {
  test("tells streams with good keys where the head is, and ends the others", async () => {
    const keys = [key("good"), key("admin", "bob", ["admin"]), key("weak", "ann", ["exports"]), key("moved", "bob")];
    const { watcher } = setUp(async () => ({ head: 7, keys }));
    const [good, admin] = [createFake("good"), createFake("admin", "bob")];
    const bad = [createFake("weak"), createFake("moved"), createFake("gone")];
    for (const { stream } of [good, admin, ...bad]) watcher.add(stream);
    while (bad.some(({ told }) => told.length === 0)) await turn();
    for (const { stream } of [good, admin, ...bad]) watcher.remove(stream);
    expect([good.told[0], admin.told[0]]).toEqual([7, 7]);
    expect(bad.map(({ told }) => told[0])).toEqual(["key", "key", "key"]);
  });

  test("says nothing about a stream that came while it looked: nobody asked for its key", async () => {
    let answer: ((glance: Glance) => void) | undefined;
    const asked: string[][] = [];
    const { watcher } = setUp((ids) => {
      asked.push([...ids]);
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const [first, second] = [createFake("first"), createFake("second")];
    watcher.add(first.stream);
    watcher.add(second.stream);
    answer?.({ head: 1, keys: [key("first")] });
    while (asked.length < 2) await turn();
    expect([first.told, second.told]).toEqual([[1], []]);
    expect(asked).toEqual([["first"], ["first", "second"]]);
    for (const { stream } of [first, second]) watcher.remove(stream);
    answer?.({ head: 1, keys: [] });
  });

  test("ends with the last stream, and begins again with the next", async () => {
    let looks = 0;
    const { watcher } = setUp(async () => ({ head: ++looks, keys: [key("k")] }));
    let witnessed = 0;
    const witness = setUp(async () => ({ head: ++witnessed, keys: [key("k")] }));
    const { stream, told } = createFake("k");
    watcher.add(stream);
    while (looks < 3) await turn();
    watcher.remove(stream);
    const clock = createFake("k");
    witness.watcher.add(clock.stream);
    while (witnessed < 5) await turn();
    const then = looks;
    while (witnessed < 25) await turn();
    expect(looks).toBe(then);
    watcher.add(stream);
    const before = told.length;
    while (told.length === before) await turn();
    watcher.remove(stream);
    witness.watcher.remove(clock.stream);
  });

  test("leaves streams alone while it fails, and tells of a failure once", async () => {
    let looks = 0;
    const { watcher, counts, troubles } = setUp(async () => {
      looks += 1;
      if (looks > 1 && looks < 6) throw new Error("away");
      return { head: looks, keys: [key("k")] };
    });
    const { stream, told } = createFake("k");
    watcher.add(stream);
    while (looks < 8) await turn();
    watcher.remove(stream);
    expect(told.slice(0, 3)).toEqual([1, 6, 7]);
    expect(troubles).toEqual([expect.objectContaining({ message: "away" }), undefined]);
    expect(counts.failures.head).toBe(4);
  });
});
