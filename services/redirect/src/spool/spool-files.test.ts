// Files of a spool that somebody removes, replaces or copies, while it is in use and between two processes.
import { beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { HEADER_BLOCK } from "./account.ts";
import { createDisk, type Disk } from "./disk.fixture.ts";
import { NO_DROPS } from "./drops.ts";
import { encodeFrames } from "./frame.ts";
import { type Counted, openSpool, type Spool } from "./open-spool.ts";
import type { Place, Segment, Stored } from "./segment.ts";

let disk: Disk;
let starts: number;
let mono: number;
let troubles: string[];
let lock: { isThere: boolean; isTaken: boolean; taken: number };
beforeEach(() => {
  disk = createDisk();
  [starts, mono, troubles] = [0, 0, []];
  lock = { isThere: true, isTaken: false, taken: 0 };
});

async function open(on = disk): Promise<Spool> {
  starts += 1;
  return openSpool({
    ...{ directory: "/spool", maxBytes: 1_000_000, segmentBytes: 16_384, fs: on.fs },
    start: { incarnation: `process-${starts}`, at: starts },
    async lock() {
      lock.taken += 1;
      lock.isThere = true;
      return lock.isTaken ? null : { release: async () => {}, holds: async () => lock.isThere };
    },
    now: () => mono,
    onTrouble: (what) => void troubles.push(what),
  });
}

const payloads = (from: number, count: number) => Array.from({ length: count }, (_, index) => `{"n":${from + index}}`);
const append = (spool: Spool, from: number, count: number) => spool.append(encodeFrames(payloads(from, count)), count);
const segmentOf = (stored: Stored) => (stored as Place).segment;
const FIRST = { number: 1, from: HEADER_BLOCK, clicks: 0 };
const counts =
  (over: Partial<Counted> = {}) =>
  () => ({
    ...{ drops: NO_DROPS, settled: 0, unspooled: 0, left: 0, front: FIRST, ...over },
  });
const sum = (spool: Spool) => spool.left.reduce((total, { clicks }) => total + clicks, 0);
/** As many turns as it takes for what was begun in the background to end: no time passes on the fake disk. */
async function look(spool: Spool, accepted: number, counted = counts()): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) {
    mono += 1000;
    spool.tick(accepted, counted);
    for (let each = 0; each < 20; each += 1) await new Promise(setImmediate);
  }
}

describe("while it is in use", () => {
  test("an account that is removed, with everything else, is written anew, and the bound counts what is gone", async () => {
    const spool = await open();
    const lost: Segment[] = [];
    spool.watch((segment) => lost.push(segment));
    const stored = await append(spool, 0, 7);
    disk.files.clear();
    await look(spool, 7);
    expect(lost).toEqual([segmentOf(stored)]);
    expect(disk.names()).toEqual(["account"]);
    expect(spool.stats()).toMatchObject({ accountLost: 1, abandoned: { name: 1 } });
    expect(troubles.filter((each) => each.includes("no longer where it was"))).toHaveLength(2);
    const next = await open(disk.copy());
    expect(sum(next)).toBe(0);
    expect(next.earlier.lost).toBeGreaterThanOrEqual(7);
    expect(next.earlier.unknown).toBe(0);
  });

  test("control: where nobody looks after the names, clicks are gone and nothing is reported", async () => {
    await append(await open(), 0, 7);
    disk.files.clear();
    expect((await open(disk.copy())).earlier).toMatchObject({ lost: 0, unknown: 0 });
  });

  test("an account that another one replaces is written over, whatever is in that", async () => {
    const spool = await open();
    await append(spool, 0, 7);
    const foreign = createDisk();
    const other = await open(foreign);
    await look(other, 99, counts({ settled: 99, front: { number: 9, from: 0, clicks: 0 } }));
    const account = foreign.files.get("/spool/account") as NonNullable<ReturnType<Disk["files"]["get"]>>;
    disk.files.set("/spool/account", { ...account, id: "foreign" });
    await look(spool, 7);
    const next = await open(disk.copy());
    expect([sum(next), next.earlier.isLastUnknown, next.first.incarnation]).toEqual([7, false, "process-1"]);
  });

  test("a segment that is removed is read by this process to its end, and the next group begins another one", async () => {
    const spool = await open();
    const stored = (await append(spool, 0, 7)) as Place;
    disk.files.delete(stored.segment.path);
    await look(spool, 7);
    const frames = encodeFrames(payloads(0, 7));
    expect(await spool.read(stored.segment, stored.from, Buffer.alloc(frames.length))).toEqual(frames);
    expect(segmentOf(await append(spool, 7, 1)).number).toBe(2);
    spool.settle(stored.segment, 7);
    expect(disk.calls.filter((call) => call === "remove clicks-000000000001.spool")).toEqual([]);
    expect(spool.stats().segments).toBe(1);
  });

  test("a lock that is removed is taken again", async () => {
    const spool = await open();
    lock.isThere = false;
    await look(spool, 0);
    expect([lock.taken, spool.stats().locksLost]).toEqual([2, 1]);
    expect(typeof (await append(spool, 0, 1))).toBe("object");
  });

  test("a directory whose lock another process has taken is not written to any more", async () => {
    const spool = await open();
    [lock.isThere, lock.isTaken] = [false, true];
    await look(spool, 0);
    const writes = () => disk.calls.filter((call) => call.startsWith("write")).length;
    const before = writes();
    expect(await append(spool, 0, 1)).toBe("refused");
    await look(spool, 5000);
    await spool.close(counts(), 0);
    expect(writes()).toBe(before);
    expect(troubles[0]).toMatch(/another process has it/);
  });
});

describe("between two processes", () => {
  /** Several segments of 1000 clicks each; ended in good order where that is said. */
  async function leave(isClean: boolean): Promise<void> {
    const spool = await open();
    await look(spool, 4000);
    for (let from = 0; from < 4000; from += 1000) await append(spool, from, 1000);
    if (isClean) await spool.close(counts(), 4000);
    expect(disk.segments()).toHaveLength(4);
  }

  test.each([
    ["the first", 0, true],
    ["one in the middle", 1, true],
    ["the last", 3, true],
    ["one in the middle, after a kill", 1, false],
  ])("%s of the segments is removed: its clicks are missing, and are counted", async (_what, index, isClean) => {
    await leave(isClean);
    disk.files.delete(disk.segments()[index] ?? "");
    const next = await open();
    expect([sum(next), next.earlier.missing]).toEqual([3000, 1000]);
    if (isClean) expect(next.earlier.lost).toBe(1000);
    else expect(next.earlier.lost).toBeGreaterThanOrEqual(1000);
    // And once.
    await next.close(counts({ left: 3000 }), 0);
    expect((await open()).earlier).toMatchObject({ missing: 0, lostLast: 0, lost: next.earlier.lost });
  });

  test("control: by the last header alone, a segment in the middle counts as one that was settled", async () => {
    await leave(true);
    disk.files.delete(disk.segments()[1] ?? "");
    const { left } = await open();
    const last = left.at(-1);
    expect((last?.number ?? 0) * 1000 - 4000).toBe(0);
  });

  test("a segment of processes before the last is missed, too", async () => {
    await leave(true);
    const second = await open();
    await second.close(counts({ left: 4000 }), 0);
    disk.files.delete(disk.segments()[2] ?? "");
    expect((await open()).earlier).toMatchObject({ missing: 1000, lost: 1000 });
  });

  test("what was settled and not removed yet is not sent again, and goes", async () => {
    const spool = await open();
    const stored = [await append(spool, 0, 1000), await append(spool, 1000, 1000), await append(spool, 2000, 10)];
    spool.settle(segmentOf(stored[0] as Stored), 1000);
    spool.settle(segmentOf(stored[2] as Stored), 4);
    disk.breakBy((which) => (which === "remove" ? "EIO" : undefined));
    const from = HEADER_BLOCK + encodeFrames(payloads(2000, 4)).length;
    spool.settle(segmentOf(stored[1] as Stored), 1000);
    await look(spool, 2010, counts({ settled: 2004, front: { number: 3, from, clicks: 4 } }));
    disk.mend();
    expect(disk.segments()).toHaveLength(3);
    const next = await open(disk);
    expect([sum(next), next.left.map((each) => [each.number, each.from])]).toEqual([6, [[3, from]]]);
    await until(() => disk.segments().length === 1);
  });

  test("a segment that is put there with an old number is sent", async () => {
    const spool = await open();
    const first = await append(spool, 0, 1000);
    const last = await append(spool, 1000, 10);
    const old = disk.copy().files.get("/spool/clicks-000000000001.spool");
    spool.settle(segmentOf(first), 1000);
    spool.settle(segmentOf(last), 10);
    await spool.close(counts({ settled: 1010, front: null }), 0);
    expect(disk.segments()).toEqual([]);
    const second = await open();
    await second.close(counts({ front: null }), 0);
    disk.files.set("/spool/clicks-000000000001.spool", old as NonNullable<typeof old>);
    expect(sum(await open())).toBe(1000);
  });

  test("no segment is removed before it is written down that it is settled", async () => {
    const spool = await open();
    const { segment } = (await append(spool, 0, 1000)) as Place;
    await append(spool, 1000, 1000);
    spool.settle(segment, 1000);
    for (let each = 0; each < 20; each += 1) await new Promise(setImmediate);
    expect(disk.segments()).toHaveLength(2);
    await look(spool, 2000, counts({ settled: 1000, front: { ...FIRST, number: 2 } }));
    expect(disk.segments()).toHaveLength(1);
  });

  test("the directory is copied: the copy goes by a name of its own, as the original may be in use", async () => {
    const spool = await open();
    await append(spool, 0, 3);
    const copy = await open(disk.copyFiles());
    expect([copy.earlier.isCopy, copy.first.incarnation, sum(copy)]).toEqual([true, "process-2", 3]);
    const same = await open(disk.copy());
    expect([same.earlier.isCopy, same.first.incarnation, sum(same)]).toEqual([false, "process-1", 3]);
  });
});

describe("a disk on which the account's flush hangs", () => {
  test("holds no start up, and is not asked again until it has ended", async () => {
    disk.breakBy((which, name) => (which === "sync" && name === "account" ? "hang" : undefined));
    const spool = await open();
    expect(troubles).toEqual(["cannot write the account of clicks"]);
    const calls = disk.calls.length;
    await look(spool, 5);
    expect(disk.calls.slice(calls).filter((call) => call.endsWith("account"))).toEqual([]);
    await spool.close(counts(), 0);
    disk.release();
  });
});
