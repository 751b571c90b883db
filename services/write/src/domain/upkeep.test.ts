import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { fenceMs, silenceMs } from "./fence.ts";
import type { Instance, Sight } from "./registry.ts";
import { committedBy, type Memory, NOTHING_SEEN, watch } from "./upkeep.ts";

const TTL_MS = 1000;
const UNSEEN_MS = 2000;
const LOOK_MS = 5;

function instance(id: string, renewals: number, ttlMs = TTL_MS): Instance {
  return { id, address: id, ttlMs, followsFeed: true, epoch: "a", appliedSeq: 0, renewals };
}

function look(memory: Memory, sentAt: number, over: Partial<Sight> = {}) {
  const sight = { sentAt, receivedAt: sentAt + LOOK_MS, epoch: "a", settled: true, head: 0, instances: [], ...over };
  return watch(memory, sight, UNSEEN_MS);
}

describe("an instance", () => {
  test("is dead when its count has not changed for longer than it can answer from memory, by its own TTL", () => {
    const instances = [instance("short", 1), instance("long", 1, 3 * TTL_MS)];
    const { memory } = look(NOTHING_SEEN, 0, { instances });
    const due = LOOK_MS + silenceMs(TTL_MS);
    expect(look(memory, due - 0.001, { instances }).dead).toEqual([]);
    expect(look(memory, due, { instances }).dead).toEqual([{ id: "short", renewals: 1 }]);
    expect(look(memory, LOOK_MS + silenceMs(3 * TTL_MS), { instances }).dead).toHaveLength(2);
  });

  test("lives on with each renewal, and with each look that is the first of a history", () => {
    const first = look(NOTHING_SEEN, 0, { instances: [instance("i", 1)] });
    const renewed = look(first.memory, 900, { instances: [instance("i", 2)] });
    expect(look(renewed.memory, LOOK_MS + silenceMs(TTL_MS), { instances: [instance("i", 2)] }).dead).toEqual([]);
    const elsewhere = look(first.memory, 5000, { instances: [instance("i", 1)], epoch: "b" });
    expect(elsewhere.dead).toEqual([]);
  });

  test("may read the log for a quarter of its TTL after its last renewal, which the wait includes", () => {
    expect(silenceMs(TTL_MS)).toBeGreaterThanOrEqual(fenceMs(TTL_MS) + TTL_MS / 4);
  });
});

describe("a history", () => {
  test("may be settled when it was watched for as long as the longest TTL lasts, and only where it is not yet", () => {
    const first = look(NOTHING_SEEN, 0, { settled: false });
    expect(first.settle).toBe(false);
    const due = LOOK_MS + fenceMs(UNSEEN_MS);
    expect(look(first.memory, due - 0.001, { settled: false }).settle).toBe(false);
    expect(look(first.memory, due, { settled: false }).settle).toBe(true);
    expect(look(first.memory, due, { settled: true }).settle).toBe(false);
    const slow = [instance("slow", 1, 10 * UNSEEN_MS)];
    expect(look(first.memory, due, { settled: false, instances: slow }).settle).toBe(false);
  });

  test("that follows another one is watched anew", () => {
    const first = look(NOTHING_SEEN, 0, { settled: false });
    const second = look(first.memory, 10_000, { settled: false, epoch: "b" });
    expect(second.settle).toBe(false);
    expect(look(second.memory, 10_000 + LOOK_MS + fenceMs(UNSEEN_MS), { settled: false, epoch: "b" }).settle).toBe(
      true,
    );
  });
});

test("the log's head tells by when a change was committed, never too early", () => {
  const steps = fc.array(fc.record({ ms: fc.integer({ min: 1, max: 100 }), more: fc.integer({ min: 0, max: 3 }) }), {
    maxLength: 50,
  });
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 160 }), (looks, seq) => {
      let memory = NOTHING_SEEN;
      let [at, head] = [0, 0];
      let expected: number | null = null;
      for (const { ms, more } of looks) {
        at += ms;
        head += more;
        memory = look(memory, at, { head }).memory;
        if (expected === null && head >= seq) expected = at + LOOK_MS;
      }
      expect(committedBy(memory, seq)).toBe(expected);
    }),
  );
  const other = look(look(NOTHING_SEEN, 0, { head: 9 }).memory, 10, { head: 4, epoch: "b" }).memory;
  expect(committedBy(other, 9)).toBeNull();
});
