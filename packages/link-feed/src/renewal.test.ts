import { afterEach, describe, expect, test } from "@jest/globals";
import { change, startSettled, stopAll } from "./follow.fixture.ts";

afterEach(stopAll);

describe("a follower", () => {
  test("renews its row with the first read, from which its memory is young: no row is judged by an older moment", async () => {
    const { world } = await startSettled();
    const renewal = { count: 1, lasting: true, appliedSeq: 0, epoch: "" };
    expect(world.requests[0]).toEqual({ instance: "i1", from: null, renewal });
  });

  test("renews when a quarter of the TTL has passed, and not at every read", async () => {
    const { world, running } = await startSettled();
    let synced = world.next(/^synced/);
    running.wake();
    await synced;
    expect(world.events.filter((event) => event.startsWith("renewed"))).toEqual(["renewed 0", "renewed 1"]);
    world.advance(100_000);
    synced = world.next(/^renewed/);
    running.wake();
    await synced;
    expect(world.events.filter((event) => event.startsWith("renewed"))).toEqual([
      "renewed 0",
      "renewed 1",
      "renewed 1",
    ]);
  });

  test("renews on time though it acknowledged meanwhile: what the server's disk had not yet may be lost", async () => {
    const { world, running, since } = await startSettled();
    world.advance(99_000);
    world.log.push(change(2));
    let synced = world.next(/^renewed 2$/);
    running.wake();
    await synced;
    await world.next(/^synced/);
    world.advance(1000);
    synced = world.next(/^synced/);
    running.wake();
    await synced;
    expect(since().filter((event) => event.startsWith("renewed"))).toEqual(["renewed 2", "renewed 2"]);
  });

  test("renews on time though there is something to acknowledge, which comes right after it", async () => {
    const { world, running, since } = await startSettled();
    world.advance(99_999);
    world.log.push(change(2));
    world.beforeAnswer(async () => world.advance(1));
    const acknowledged = world.next(/^renewed 2$/);
    running.wake();
    await acknowledged;
    expect(since().filter((event) => event.startsWith("renewed"))).toEqual(["renewed 1", "renewed 2"]);
  });

  test("renews at once in a machine that slept, whose clock that never steps stood still", async () => {
    const { world, running, since } = await startSettled();
    world.sleep(100_000);
    const renewed = world.next(/^renewed/);
    running.wake();
    await renewed;
    expect(since()).toEqual(["renewed 1"]);
  });
});
