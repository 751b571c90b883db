import { afterEach, describe, expect, test } from "@jest/globals";
import { change, createWorld, start, startSettled, stopAll } from "./follow.fixture.ts";

afterEach(stopAll);

describe("a follower", () => {
  test("registers, then reads, flushes and is synced, and only then acknowledges", async () => {
    const { world } = await startSettled();
    expect(world.events).toEqual([
      "registered i1",
      "renewed 0",
      "flushed started",
      "synced 0",
      "renewed 1",
      "synced 0",
    ]);
  });

  test("applies what a notification announces, and acknowledges it at once", async () => {
    const { world, running, since } = await startSettled();
    world.log.push(change(2));
    const acknowledged = world.next(/^renewed 2$/);
    running.wake();
    await acknowledged;
    expect(since()).toEqual(["applied 2", "synced 0", "renewed 2"]);
    expect(running.stats()).toMatchObject({ appliedSeq: 2, head: 2, lag: 0 });
  });

  test("is synced only after the last of several pages, as of the moment the last one was asked for", async () => {
    const { world, running, since } = await startSettled();
    for (let seq = 2; seq <= 8; seq += 1) world.log.push(change(seq));
    world.beforeAnswer(async () => world.advance(10));
    const acknowledged = world.next(/^renewed 8$/);
    running.wake();
    await acknowledged;
    const seen = since().filter((event) => !event.startsWith("renewed"));
    expect(seen.slice(0, 5)).toEqual(["applied 2,3", "applied 4,5", "applied 6,7", "applied 8", "synced 30"]);
  });

  test("counts freshness from before a read was sent, however late its answer comes", async () => {
    const { world, running } = await startSettled();
    world.beforeAnswer(async () => world.advance(1_000_000));
    const synced = world.next(/^synced/);
    running.wake();
    await synced;
    expect(world.events.at(-1)).toBe("synced 0");
  });

  test("forgets everything and starts at the head after a failover", async () => {
    const { world, running, since } = await startSettled();
    world.failover();
    world.log.push(change(2));
    const acknowledged = world.next(/^renewed 2$/);
    running.wake();
    await acknowledged;
    expect(since()).toEqual(["flushed epoch-changed", "renewed 0", "flushed started", "synced 0", "renewed 2"]);
    expect(running.flushes()).toEqual({ started: 2, "epoch-changed": 1 });
  });

  test("comes back under a new id when its row is gone, having forgotten everything", async () => {
    const { world, running, since } = await startSettled();
    world.forget();
    const acknowledged = world.next(/^renewed 1$/);
    running.wake();
    await acknowledged;
    expect(since()).toEqual([
      "flushed registration-lost",
      "registered i2",
      "renewed 0",
      "flushed started",
      "synced 0",
      "renewed 1",
    ]);
    expect(world.requests.at(-1)?.instance).toBe("i2");
  });

  test("registers again under the same id when the answer was lost", async () => {
    let attempts = 0;
    const ids: string[] = [];
    const world = createWorld({
      register: async (id) => {
        ids.push(id);
        attempts += 1;
        if (attempts === 1) throw new Error("connection lost");
      },
    });
    const settled = world.next(/^renewed/);
    start(world.options);
    await settled;
    expect(ids).toEqual(["i1", "i1"]);
  });

  test("goes on after failures, and tells of trouble and recovery once each", async () => {
    const { world, running, since } = await startSettled();
    let failures = 0;
    world.beforeAnswer(async () => {
      failures += 1;
      if (failures <= 2) throw new Error("away");
    });
    const recovered = world.next(/^recovered/);
    running.wake();
    await recovered;
    expect(since().filter((event) => /trouble|recovered/.test(event))).toEqual(["trouble away", "recovered"]);
    expect(running.stats().failures).toBe(2);
  });

  test("is not hastened by notifications while reads fail", async () => {
    const { world, running } = await startSettled({ pollIntervalMs: 1000 });
    world.beforeAnswer(async () => {
      throw new Error("away");
    });
    const trouble = world.next(/^trouble/);
    running.wake();
    await trouble;
    const { failures } = running.stats();
    for (let round = 0; round < 100; round += 1) {
      running.wake();
      await new Promise(setImmediate);
    }
    expect(running.stats().failures).toBe(failures);
  });

  test("keeps what it applied when a later page fails, and is not synced until the last one is there", async () => {
    const { world, running } = await startSettled();
    for (let seq = 2; seq <= 5; seq += 1) world.log.push(change(seq));
    let reads = 0;
    world.beforeAnswer(async () => {
      reads += 1;
      if (reads === 2) throw new Error("away");
    });
    const acknowledged = world.next(/^renewed 5$/);
    running.wake();
    await acknowledged;
    const since = world.events.slice(world.events.indexOf("applied 2,3"));
    const untilSynced = since.slice(0, since.indexOf("synced 0")).filter((event) => !event.startsWith("renewed"));
    expect(untilSynced).toEqual(["applied 2,3", "trouble away", "applied 4,5"]);
  });

  test("takes a flood of notifications for a few", async () => {
    const { world, running } = await startSettled();
    const reads = running.stats().syncs;
    for (let count = 0; count < 10_000; count += 1) running.wake();
    const synced = world.next(/^synced/);
    await synced;
    expect(running.stats().syncs - reads).toBeLessThan(5);
  });

  test("ends after the read under way when it is stopped", async () => {
    const { world, running } = await startSettled();
    let release = () => {};
    let asked = () => {};
    const underWay = new Promise<void>((resolve) => {
      asked = resolve;
    });
    world.beforeAnswer(() => {
      asked();
      return new Promise<void>((resolve) => {
        release = resolve;
      });
    });
    running.wake();
    await underWay;
    const stopped = running.stop();
    release();
    await stopped;
    const reads = running.stats().syncs;
    running.wake();
    expect(running.stats().syncs).toBe(reads);
  });
});
