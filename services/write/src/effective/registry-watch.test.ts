import { afterEach, describe, expect, test } from "@jest/globals";
import { createCounts } from "../counts.ts";
import type { Instance, Sight } from "../domain/registry.ts";
import { createRegistryWatch, type RegistryWatch } from "./registry-watch.ts";

const EPOCH = "e";
const EVERY_MS = { awaited: 50, idle: 1000 };
const FOLLOWER: Instance = {
  ...{ id: "i", address: "a:1", ttlMs: 60_000, followsFeed: true, epoch: EPOCH },
  ...{ appliedSeq: 1, renewals: 1 },
};

let watch: RegistryWatch | undefined;
afterEach(() => watch?.stop());

/** Until everything that is under way without a timer has come to its end. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A watch that has looked once, by a clock that goes on when it is told to. */
async function start(instances: readonly Instance[] = [FOLLOWER]) {
  let clock = 0;
  let timers: { at: number; act: () => void }[] = [];
  const world = { instances, looks: 0 };
  const counts = createCounts().effective;
  const running = createRegistryWatch({
    registry: {
      async look(): Promise<Sight> {
        world.looks += 1;
        const head = Math.max(0, ...world.instances.map(({ appliedSeq }) => appliedSeq));
        return { sentAt: clock, receivedAt: clock, epoch: EPOCH, settled: true, head, instances: world.instances };
      },
      settle: async () => true,
      remove: async () => [],
    },
    now: () => clock,
    after: (ms, act) => {
      const timer = { at: clock + ms, act };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    ...{ everyMs: EVERY_MS, unseenTtlMs: 60_000, counts },
    onUpkeep: () => {},
    onTrouble: () => {},
  });
  watch = running;
  await settled();
  return {
    world,
    running,
    acknowledge(seq: number): void {
      world.instances = world.instances.map((instance) => ({ ...instance, appliedSeq: seq }));
    },
    async advance(ms: number): Promise<void> {
      clock += ms;
      for (const { act } of timers.filter(({ at }) => at <= clock)) act();
      await settled();
    },
    confirm: (seq: number, timeoutMs = 5000, signal?: AbortSignal) =>
      running.confirm({ seq, committedAt: clock, epoch: EPOCH }, timeoutMs, signal),
  };
}

const confirmed = { kind: "confirmed", by: "acknowledged" };

describe("who waits for acknowledgements", () => {
  test("looks when the first may have come, and not before", async () => {
    const { world, running, acknowledge, confirm } = await start();
    const verdict = confirm(2);
    await settled();
    expect(world.looks).toBe(1);
    acknowledge(2);
    running.wake();
    expect(await verdict).toMatchObject(confirmed);
    expect(world.looks).toBe(2);
  });

  test("looks at once where one came before the wait began", async () => {
    const { world, running, acknowledge, confirm } = await start();
    acknowledge(2);
    running.wake();
    await settled();
    expect(world.looks).toBe(1);
    expect(await confirm(2)).toMatchObject(confirmed);
    expect(world.looks).toBe(2);
  });

  test("looks soon where none is ever heard of, however long nobody waited", async () => {
    const { world, acknowledge, advance, confirm } = await start();
    await advance(EVERY_MS.idle - 10);
    const verdict = confirm(2);
    acknowledge(2);
    await advance(EVERY_MS.awaited - 1);
    expect(world.looks).toBe(1);
    await advance(1);
    expect(await verdict).toMatchObject(confirmed);
  });

  test("looks again and again while somebody is missing, and is not held up by one who came later", async () => {
    const { world, advance, confirm } = await start();
    const verdicts = [confirm(2)];
    for (const looks of [2, 3, 4]) {
      await advance(EVERY_MS.awaited / 2);
      verdicts.push(confirm(2));
      await advance(EVERY_MS.awaited / 2);
      expect(world.looks).toBe(looks);
    }
    await watch?.stop();
    expect((await Promise.all(verdicts)).map(({ kind }) => kind)).toEqual(Array(4).fill("waiting"));
  });

  test("looks as often where many wait in turn, each for less time than lies between two looks", async () => {
    const { world, advance, confirm } = await start();
    for (let turn = 0; turn < 100; turn += 1) {
      const verdict = confirm(2, EVERY_MS.awaited - 5);
      await settled();
      await advance(EVERY_MS.awaited - 5);
      await verdict;
      await advance(3);
    }
    // The clock of the test goes on by nearly as much as lies between two looks.
    expect(world.looks).toBeGreaterThanOrEqual(100 / 3);
  });

  test("is not waited for when they left before", async () => {
    const { running, confirm } = await start();
    expect(await confirm(2, 5000, AbortSignal.abort())).toMatchObject({ kind: "waiting" });
    expect(running.stats().waiting).toBe(0);
  });

  test.each([
    ["nobody is registered", []],
    ["somebody is told of nothing", [{ ...FOLLOWER, followsFeed: false }]],
  ])("looks at once where %s", async (_, instances) => {
    const { world, advance, confirm } = await start(instances);
    await advance(1);
    void confirm(2);
    await settled();
    expect(world.looks).toBe(2);
  });
});
