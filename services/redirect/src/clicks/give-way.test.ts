import { afterEach, describe, expect, test } from "@jest/globals";
import { waitFor } from "@linkfence/testkit";
import fc from "fast-check";
import { createDisk, type Disk } from "../spool/disk.fixture.ts";
import { startPath, stopPaths, stored } from "./click-path.fixture.ts";
import { createClickSender } from "./click-sender.ts";
import { createUtilization, restMs } from "./give-way.ts";

afterEach(stopPaths);

const busy = { utilization: 1, tookMs: 20, spoolShare: 0.1, unplaced: 0 };

describe("the rest after a batch", () => {
  test.each([
    ["fifteen times as long as it was under way, where redirects take all the time", busy, 300],
    ["half a second at the most", { ...busy, tookMs: 5000 }, 500],
    ["none where half of the time is left", { ...busy, utilization: 0.49 }, 0],
    ["none where half of the spool is taken", { ...busy, spoolShare: 0.51 }, 0],
    ["none where a click is in no file", { ...busy, unplaced: 1 }, 0],
  ])("is %s", (_what, moment, expected) => expect(restMs(moment)).toBe(expected));

  test("is bounded, and never for clicks that may be lost or crowd out others", () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const moments = fc.record({
      ...{ utilization: share, spoolShare: share },
      tookMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
      unplaced: fc.nat(3),
    });
    fc.assert(
      fc.property(moments, (moment) => {
        const rest = restMs(moment);
        expect(rest).toBeGreaterThanOrEqual(0);
        expect(rest).toBeLessThanOrEqual(500);
        if (moment.unplaced > 0 || moment.spoolShare > 0.5) expect(rest).toBe(0);
      }),
    );
  });
});

test("the utilization is that of the time since it was last read", () => {
  const totals = [0, 30, 30, 130].map((active, n) => ({ active, idle: 100 * n - active, utilization: 0 }));
  const read: typeof performance.eventLoopUtilization = (now, before) => {
    if (now === undefined || before === undefined) return totals.shift() ?? { active: 0, idle: 0, utilization: 0 };
    const [active, idle] = [now.active - before.active, now.idle - before.idle];
    return { active, idle, utilization: active / (active + idle) };
  };
  const utilization = createUtilization(read);
  expect([utilization(), utilization(), utilization()]).toEqual([0.3, 0, 1]);
});

describe("clicks that come while redirects take all the time", () => {
  const trial = (utilization: number, how: { disk?: Disk }) =>
    startPath({ ...how, utilization: () => utilization, answer: ({ length }) => stored(length) });

  test("are all stored in the end, in order, and rests are counted", async () => {
    const { path, sent, click, settled } = await trial(1, { disk: createDisk() });
    click(1800);
    await settled();
    expect(path.ledger()).toMatchObject({ accepted: 1800, inserted: 1800 });
    expect(path.stats().rests).toBeGreaterThan(0);
    const times = sent.flat().map((id) => Number(id.split("-")[0]));
    expect(times).toEqual(Array.from({ length: 1800 }, (_, n) => n));
  });

  test.each([
    ["there is time", 0, { disk: createDisk() }],
    ["there is no spool", 1, {}],
  ])("are not kept waiting where %s", async (_what, utilization, how) => {
    const { path, click, settled } = await trial(utilization, how);
    click(1800);
    await settled();
    expect(path.stats().rests).toBe(0);
  });
});

describe("a sender that rests", () => {
  /** Has two full batches to send. */
  function startSender(rest: number, events: string[]) {
    let waiting = 2000;
    const sender = createClickSender({
      batches: {
        next: async () => ({ clicks: 1000, frames: [], parts: [] }),
        settle: () => {
          waiting -= 1000;
        },
        divide: () => false,
        counts: () => ({ found: 0, damaged: 0, settled: 0, unspooled: 0, leftSettled: 0, readFailures: 0 }),
      },
      waiting: () => waiting,
      send: async () => {
        events.push("batch");
        return stored(1000);
      },
      restMs: () => rest,
      ...{ lingerMs: 0, now: () => performance.now(), random: () => 0, onTrouble: () => {} },
    });
    return { sender, waiting: () => waiting };
  }

  /** Two batches, and a stop once the first has been stored and everybody had a turn. */
  async function send(rest: number): Promise<string[]> {
    const events: string[] = [];
    const { sender, waiting } = startSender(rest, events);
    await waitFor("the first batch", () => waiting() < 2000);
    sender.noteWaiting();
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    events.push("stop");
    await sender.stop(60_000);
    return events;
  }

  test("sends nothing meanwhile, and a stop ends the rest", async () => {
    expect(await send(3_600_000)).toEqual(["batch", "stop", "batch"]);
  });

  test("that has nobody to rest for, as a control, has sent it all before", async () => {
    expect(await send(0)).toEqual(["batch", "batch", "stop"]);
  });
});
