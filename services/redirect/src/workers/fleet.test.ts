// The fleet's decisions, with processes that do what a test says.
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { createFleet, type Ended, type Fork } from "./fleet.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

type Fake = {
  number: number;
  place: number;
  told: ToWorker[];
  say: (message: FromWorker) => void;
  end: (ended?: Partial<Ended>) => Promise<void>;
  killed: boolean;
};

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const pass = (ms = 0) => jest.advanceTimersByTimeAsync(ms);
const silent = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };

function createTrial(size: number, leftPlaces: () => Promise<number[]> = async () => []) {
  const forked: Fake[] = [];
  const givenUp: Error[] = [];
  const fork: Fork = ({ number, place }) => {
    let listener: (message: FromWorker) => void = () => {};
    let resolve: (ended: Ended) => void = () => {};
    const exited = new Promise<Ended>((set) => {
      resolve = set;
    });
    const fake: Fake = {
      ...{ number, place, told: [], killed: false },
      say: (message) => listener(message),
      async end(ended = {}) {
        resolve({ code: 0, signal: null, ...ended });
        await pass();
      },
    };
    forked.push(fake);
    return {
      ...{ pid: forked.length, exited },
      send: (message) => void fake.told.push(message),
      onMessage(given) {
        listener = given;
      },
      kill() {
        fake.killed = true;
        resolve({ code: null, signal: "SIGKILL" });
      },
    };
  };
  const fleet = createFleet({
    ...{ size, fork, leftPlaces, logger: silent, now: () => Date.now() },
    ...{ onMessage: () => {}, onEnded: () => {}, onGivenUp: (error) => givenUp.push(error) },
  });
  const last = () => forked.at(-1) as Fake;
  const getReady = async (fake: Fake) => {
    fake.say({ kind: "listening", port: 1 });
    fake.say({ kind: "ready" });
    await pass();
  };
  return {
    ...{ fleet, forked, givenUp, last, getReady },
    async start(): Promise<Fake[]> {
      const started = fleet.start();
      for (const fake of [...forked]) await getReady(fake);
      await started;
      return [...forked];
    },
  };
}

describe("a reload", () => {
  test("tells each worker to end when its successor is ready, not before, and the next one afterwards", async () => {
    const { fleet, forked, last, getReady, start } = createTrial(2);
    const [one, two] = (await start()) as [Fake, Fake];
    void fleet.reload();
    await pass(1000);
    expect([forked.length, one.told, last().number, last().place]).toEqual([3, [], 1, 3]);
    last().say({ kind: "listening", port: 1 });
    await pass(1000);
    expect(one.told).toEqual([]);
    await getReady(last());
    expect(one.told).toEqual([{ kind: "retire" }]);
    await pass(1000);
    expect([forked.length, two.told]).toEqual([3, []]);
    await one.end();
    expect([last().number, last().place]).toEqual([2, 1]);
    await getReady(last());
    expect(two.told).toEqual([{ kind: "retire" }]);
    await two.end();
    expect(fleet.counts()).toMatchObject({ unexpectedEnds: 0, reloads: { done: 1, failed: 0 } });
  });

  test("that is asked for twice more meanwhile comes once more", async () => {
    const { fleet, forked, getReady, start } = createTrial(1);
    await start();
    for (let times = 0; times < 3; times += 1) void fleet.reload();
    for (let index = 1; index <= 2; index += 1) {
      await pass();
      await getReady(forked[index] as Fake);
      await forked[index - 1]?.end();
    }
    await pass(60_000);
    expect([forked.length, fleet.counts().reloads]).toEqual([3, { done: 2, failed: 0 }]);
  });

  test.each(["is never ready", "ends"])(
    "whose successor %s leaves the worker alone, and the others too",
    async (what) => {
      const { fleet, forked, last, start } = createTrial(2);
      const [one, two] = (await start()) as [Fake, Fake];
      const reload = fleet.reload();
      await pass();
      if (what === "ends") await last().end({ code: 1 });
      else {
        await pass(30_000);
        expect(last().told).toEqual([{ kind: "stop" }]);
        await last().end();
      }
      await reload;
      await pass(60_000);
      expect([one.told, two.told, forked.length]).toEqual([[], [], 3]);
      expect(fleet.counts().reloads).toEqual({ done: 0, failed: 1 });
    },
  );

  test("kills a worker that does not end when its successor is there", async () => {
    const { fleet, last, getReady, start } = createTrial(1);
    const [one] = (await start()) as [Fake];
    const reload = fleet.reload();
    await pass();
    await getReady(last());
    await pass(21_999);
    expect(one.killed).toBe(false);
    await pass(1);
    await reload;
    expect([one.killed, fleet.counts().killed]).toEqual([true, 1]);
  });

  test.each([true, false])(
    "during which the old worker dies has one in its place (the successor ready: %s)",
    async (ready) => {
      const { fleet, forked, last, getReady, start } = createTrial(1);
      const [one] = (await start()) as [Fake];
      const reload = fleet.reload();
      await pass();
      await one.end({ code: null, signal: "SIGKILL" });
      await pass(10_000);
      expect(forked.length).toBe(2);
      if (ready) await getReady(last());
      else await last().end({ code: 1 });
      await reload;
      await pass(10_000);
      expect([forked.length, last().number]).toEqual([ready ? 2 : 3, 1]);
    },
  );

  test("ends with a stop, which also ends the successor", async () => {
    const { fleet, forked, last, start } = createTrial(2);
    await start();
    const reload = fleet.reload();
    await pass();
    const stop = fleet.stop();
    await pass();
    expect(forked.map(({ told }) => told)).toEqual([[{ kind: "stop" }], [{ kind: "stop" }], [{ kind: "stop" }]]);
    for (const fake of forked) await fake.end();
    await Promise.all([reload, stop]);
    await pass(60_000);
    expect([forked.length, last().killed]).toEqual([3, false]);
  });
});

describe("a worker", () => {
  test("that ended is followed by one of its number, in its place", async () => {
    const { forked, last, start } = createTrial(3);
    const [, two] = (await start()) as [Fake, Fake, Fake];
    await two.end({ code: null, signal: "SIGKILL" });
    await pass(100);
    expect([forked.length, last().number, last().place]).toEqual([4, 2, 2]);
  });

  test("that refuses its configuration ends the start, but not what runs already", async () => {
    const first = createTrial(2);
    void first.fleet.start();
    await first.last().end({ code: 78 });
    expect(first.givenUp.map(({ name }) => name)).toEqual(["ConfigError"]);
    const second = createTrial(2);
    const [one] = (await second.start()) as [Fake, Fake];
    await one.end({ code: 78 });
    await pass(100);
    expect([second.givenUp, second.forked.length]).toEqual([[], 3]);
  });

  test("that dies again and again is started ever more slowly, for ever, while another one serves", async () => {
    const { fleet, forked, givenUp, last, start } = createTrial(2);
    await start();
    await last().end({ code: 1 });
    for (let times = 0; times < 20; times += 1) {
      await pass(5000);
      await last().end({ code: 1 });
    }
    expect([givenUp, forked.length]).toEqual([[], 22]);
    const stop = fleet.stop();
    await forked[0]?.end();
    await stop;
  });

  test("that never begins to listen is killed", async () => {
    const { fleet, last } = createTrial(1);
    void fleet.start();
    const hanging = last();
    await pass(600_000);
    expect(hanging.killed).toBe(true);
  });
});

describe("a place with clicks that no worker has", () => {
  test("is given to one worker when all are there, and not taken by the next one that starts meanwhile", async () => {
    const { fleet, forked, last, getReady, start } = createTrial(2, async () => [1, 2, 3, 5]);
    await start();
    const given = forked.map(({ told }) => told);
    expect(given).toEqual([[{ kind: "inherit", place: 3 }], [{ kind: "inherit", place: 5 }]]);
    void fleet.reload();
    await pass();
    expect(last().place).toBe(4);
    forked[0]?.say({ kind: "inherited", place: 3 });
    await getReady(last());
    await forked[0]?.end();
    await getReady(last());
    expect(last().place).toBe(1);
  });

  test("is given to another one when its heir has died", async () => {
    const { forked, last, getReady, start } = createTrial(1, async () => [7]);
    const [one] = (await start()) as [Fake];
    expect(one.told).toEqual([{ kind: "inherit", place: 7 }]);
    await one.end({ code: null, signal: "SIGKILL" });
    await pass(100);
    expect([forked.length, last().told]).toEqual([2, []]);
    await getReady(last());
    expect(last().told).toEqual([{ kind: "inherit", place: 7 }]);
  });
});
