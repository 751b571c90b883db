import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createHitStore, type HitStoreOptions } from "./hit-store.ts";

const WINDOW_MS = 60_000;

/** A store whose clock goes only when it is told to. */
function createStore(over: Partial<HitStoreOptions> = {}) {
  const clock = { ms: 1000 };
  const store = createHitStore({ windowMs: WINDOW_MS, maxClients: 3, now: () => clock.ms, ...over });
  const hit = async (key: string) => (await store.increment(key)).totalHits;
  return { store, clock, hit };
}

describe("the hits of a client", () => {
  test("are counted within a window that begins with the first, and not at all behind it", async () => {
    const { store, clock, hit } = createStore();
    expect([await hit("a"), await hit("a"), await hit("b")]).toEqual([1, 2, 1]);
    clock.ms += WINDOW_MS;
    expect(await hit("a")).toBe(3);
    clock.ms += 1;
    expect([store.hits("a"), store.hits("b")]).toEqual([0, 0]);
    expect(await hit("a")).toBe(1);
  });

  test("are never more in any one window than were made in it, and no hit makes a window longer", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: 1, maxLength: 40 }),
        async (waits) => {
          const { clock, hit } = createStore();
          let begunAt = Number.NEGATIVE_INFINITY;
          let expected = 0;
          for (const wait of waits) {
            clock.ms += wait;
            if (clock.ms - begunAt > WINDOW_MS) [begunAt, expected] = [clock.ms, 0];
            expected += 1;
            expect(await hit("a")).toBe(expected);
          }
        },
      ),
    );
  });

  test("can be taken back and forgotten, as the library may ask for", async () => {
    const { store, hit } = createStore();
    await hit("a");
    await hit("a");
    await store.decrement("a");
    expect(store.hits("a")).toBe(1);
    await store.resetKey("a");
    await store.decrement("a");
    expect([store.hits("a"), await store.get?.("a")]).toEqual([0, undefined]);
  });

  test("have as much of their window left as is left by the clock that only goes forward", async () => {
    const { store, clock } = createStore();
    await store.increment("a");
    clock.ms += 45_000;
    const asked = Date.now();
    const { resetTime } = await store.increment("a");
    const left = Number(resetTime) - asked;
    expect(left).toBeGreaterThanOrEqual(15_000);
    expect(left).toBeLessThanOrEqual(15_000 + Date.now() - asked);
  });
});

describe("the room of the store", () => {
  test("holds so many clients and no more; who was quiet for longest goes, and is counted", async () => {
    const { store, hit } = createStore();
    for (const key of ["a", "b", "c", "a", "d"]) await hit(key);
    expect(store.stats()).toEqual({ clients: 3, evicted: 1 });
    expect(["a", "b", "c", "d"].map(store.hits)).toEqual([2, 0, 1, 1]);
  });

  test("is free again when windows have ended, though nobody comes", async () => {
    const { store, clock, hit } = createStore();
    for (const key of ["a", "b"]) await hit(key);
    clock.ms += WINDOW_MS + 1;
    expect(store.stats()).toEqual({ clients: 0, evicted: 0 });
  });

  test("does not let others push out a client that goes on", async () => {
    const { hit } = createStore({ maxClients: 10 });
    let last = 0;
    for (let n = 0; n < 1000; n += 1) {
      await hit(`other-${n}`);
      last = await hit("a");
    }
    expect(last).toBe(1000);
  });
});
