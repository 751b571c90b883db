import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { clickBytes } from "../domain/click.ts";
import { sampleClick, sampleClicks, sampleOrigin } from "../test-support/sample-clicks.ts";
import { createIntake } from "./intake.ts";
import type { Part } from "./submission.ts";

const ORIGIN = sampleOrigin();
const NOBODY_LEAVES = new AbortController().signal;
const open = (changes: Partial<Parameters<typeof createIntake>[0]> = {}) =>
  createIntake({ maxClicks: 100, maxBytes: 1_000_000, deadlineMs: 60_000, ...changes });
const countTaken = (parts: readonly Part[]) => parts.reduce((sum, { clicks }) => sum + clicks.length, 0);
const store = (parts: readonly Part[]) => {
  for (const { submission, clicks } of parts) submission.record({ inserted: clicks.length });
};

describe("the intake", () => {
  test("gives a submission back when it has no room for its clicks, and takes it when room is made", async () => {
    const intake = open();
    const first = intake.offer(sampleClicks(99), NOBODY_LEAVES, ORIGIN);
    expect(await intake.offer(sampleClicks(2), NOBODY_LEAVES, ORIGIN)).toEqual({ kind: "given-back", reason: "full" });
    const exact = intake.offer(sampleClicks(1), NOBODY_LEAVES, ORIGIN);
    store(intake.take(1000));
    expect(await first).toEqual({ kind: "stored", inserted: 99, duplicate: 0, buried: 0, late: [], noRoom: [] });
    expect(await exact).toMatchObject({ inserted: 1 });
    expect(intake.stats()).toEqual({ clicks: 0, bytes: 0 });
  });

  test("gives a submission back when it has no room for its bytes", async () => {
    const click = sampleClick();
    const intake = open({ maxBytes: 2 * clickBytes(click) });
    const kept = intake.offer([click, click], NOBODY_LEAVES, ORIGIN);
    expect(await intake.offer([click], NOBODY_LEAVES, ORIGIN)).toEqual({ kind: "given-back", reason: "full" });
    store(intake.take(2));
    expect(await kept).toMatchObject({ kind: "stored" });
  });

  test("prepares the clicks that it has room for, and no others; a failure to do so leaves nothing queued", async () => {
    const seen: number[] = [];
    let fails = false;
    const prepare = (clicks: readonly unknown[]) => {
      if (fails) throw new Error("made up");
      seen.push(clicks.length);
    };
    const intake = open({ prepare });
    const kept = intake.offer(sampleClicks(99), NOBODY_LEAVES, ORIGIN);
    expect(await intake.offer(sampleClicks(2), NOBODY_LEAVES, ORIGIN)).toMatchObject({ reason: "full" });
    expect(seen).toEqual([99]);
    fails = true;
    expect(() => intake.offer([sampleClick()], NOBODY_LEAVES, ORIGIN)).toThrow("made up");
    expect(intake.stats().clicks).toBe(99);
    store(intake.take(1000));
    expect(await kept).toMatchObject({ inserted: 99 });
    expect(intake.stats()).toEqual({ clicks: 0, bytes: 0 });
  });

  test("counts clicks until they are stored, not until they are taken", async () => {
    const intake = open();
    const outcome = intake.offer(sampleClicks(100), NOBODY_LEAVES, ORIGIN);
    const taken = intake.take(100);
    expect(intake.stats().clicks).toBe(100);
    expect(await intake.offer([sampleClick()], NOBODY_LEAVES, ORIGIN)).toMatchObject({ reason: "full" });
    store(taken);
    expect(await outcome).toMatchObject({ inserted: 100 });
  });

  test("gives a submission back at its deadline; its clicks leave, taken or not", async () => {
    const intake = open({ deadlineMs: 1 });
    const outcome = intake.offer(sampleClicks(10), NOBODY_LEAVES, ORIGIN);
    const taken = intake.take(4);
    expect(await outcome).toEqual({ kind: "given-back", reason: "deadline" });
    expect(intake.take(100)).toEqual([]);
    expect(intake.stats()).toEqual({ clicks: 0, bytes: 0 });
    store(taken);
    expect(intake.stats()).toEqual({ clicks: 0, bytes: 0 });
  });

  test("gives a submission back when nobody waits for it any more, before or after it is queued", async () => {
    const intake = open();
    const caller = new AbortController();
    const outcome = intake.offer(sampleClicks(10), caller.signal, ORIGIN);
    caller.abort();
    expect(await outcome).toEqual({ kind: "given-back", reason: "abandoned" });
    expect(await intake.offer(sampleClicks(10), caller.signal, ORIGIN)).toEqual({
      kind: "given-back",
      reason: "abandoned",
    });
    expect(intake.stats().clicks).toBe(0);
  });

  test("takes nothing in once it is closed, keeps what it has, and then says that nothing will come", async () => {
    const intake = open();
    const queued = intake.offer([sampleClick()], NOBODY_LEAVES, ORIGIN);
    intake.close();
    expect(intake.isOpen()).toBe(false);
    expect(await intake.offer([sampleClick()], NOBODY_LEAVES, ORIGIN)).toEqual({
      kind: "given-back",
      reason: "stopping",
    });
    expect(await intake.arrival()).toBe(true);
    store(intake.take(1));
    expect(await queued).toMatchObject({ inserted: 1 });
    expect(await intake.arrival()).toBe(false);
  });

  test("wakes its waiter by an arrival and by being closed", async () => {
    const intake = open();
    const arrival = intake.arrival();
    void intake.offer([sampleClick()], NOBODY_LEAVES, ORIGIN);
    expect(await arrival).toBe(true);
    store(intake.take(1));
    const end = intake.arrival();
    intake.close();
    expect(await end).toBe(false);
  });

  test("hands out every click once and in order, whatever the sizes of submissions and batches", async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 20 }), async (counts, batchMax) => {
        const intake = open();
        const lists = counts.map((count) => sampleClicks(count));
        const outcomes = lists.map((list) => intake.offer(list, NOBODY_LEAVES, ORIGIN));
        const seen: string[] = [];
        for (let parts = intake.take(batchMax); parts.length > 0; parts = intake.take(batchMax)) {
          expect(countTaken(parts)).toBeLessThanOrEqual(batchMax);
          seen.push(...parts.flatMap(({ clicks }) => clicks.map(({ id }) => id)));
          store(parts);
        }
        expect(seen).toEqual(lists.flat().map(({ id }) => id));
        expect(await Promise.all(outcomes)).toEqual(
          counts.map((inserted) => ({ kind: "stored", inserted, duplicate: 0, buried: 0, late: [], noRoom: [] })),
        );
      }),
    );
  });
});
