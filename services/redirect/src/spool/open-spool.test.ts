import { beforeEach, describe, expect, test } from "@jest/globals";
import { ConfigError } from "@linkfence/service-shell";
import { HEADER_BLOCK } from "./account.ts";
import { createDisk, type Disk, type Fault, type Operation } from "./disk.fixture.ts";
import { NO_DROPS } from "./drops.ts";
import { encodeFrames, readFrames } from "./frame.ts";
import { type Counted, openSpool, type Spool } from "./open-spool.ts";
import type { Place, Stored } from "./segment.ts";

let disk: Disk;
let starts: number;
let troubles: string[];
beforeEach(() => {
  disk = createDisk();
  starts = 0;
  troubles = [];
});

/** Opens what the disk holds, as the next process does. */
async function open(on = disk): Promise<Spool> {
  starts += 1;
  const start = { incarnation: `process-${starts}`, at: starts };
  return openSpool({
    ...{ directory: "/spool", maxBytes: 1_000_000, segmentBytes: 100_000, fs: on.fs, start },
    lock: async () => ({ release: async () => {}, holds: async () => true }),
    now: () => 0,
    onTrouble: (what) => void troubles.push(what),
  });
}

const payloads = (from: number, count: number) => Array.from({ length: count }, (_, index) => `{"n":${from + index}}`);
const append = (spool: Spool, from: number, count: number) => spool.append(encodeFrames(payloads(from, count)), count);
const counts =
  (over: Partial<Counted> = {}) =>
  () => ({
    ...{ drops: NO_DROPS, settled: 0, unspooled: 0, left: 0, front: null, ...over },
  });

const NOTHING = {
  ...{ lost: 0, lostLast: 0, unknown: 0, isLastUnknown: false, missing: 0, damaged: 0, isCopy: false },
  drops: NO_DROPS,
};
/** Where the first click of a new directory lies. */
const FIRST = { number: 1, from: HEADER_BLOCK, clicks: 0 };

/** Everything that is to be sent first. */
async function readLeft(spool: Spool): Promise<string[]> {
  const parts = await Promise.all(
    spool.left.map(({ segment, from }) => spool.read(segment, from, Buffer.alloc(segment.size - from))),
  );
  return parts.flatMap((part) => readFrames(part, { last: true }).payloads.map((each) => each.toString()));
}
const sum = (spool: Spool) => spool.left.reduce((total, { clicks }) => total + clicks, 0);
const segmentOf = (stored: Stored) => (stored as Place).segment;

describe("a process that comes after a killed one", () => {
  test("finds its clicks, in order, and how many it may have lost", async () => {
    const first = await open();
    expect([first.left, first.earlier]).toEqual([[], NOTHING]);
    await append(first, 0, 3);
    await append(first, 3, 4);
    first.tick(9, counts({ front: FIRST }));

    const next = await open(disk.copy());
    expect(await readLeft(next)).toEqual(payloads(0, 7));
    // The first reserve, less the seven.
    expect(next.earlier).toMatchObject({ lost: 993, lostLast: 993, missing: 0, unknown: 0 });
    next.tick(0, counts({ front: FIRST }));

    const third = await open(disk.copy());
    expect(await readLeft(third)).toEqual(payloads(0, 7));
  });

  test("finds them behind the greatest number that a file can have, wherever that came from", async () => {
    disk.files.set("/spool/clicks-999999999999.spool", { bytes: Buffer.alloc(0), synced: Buffer.alloc(0) });
    await append(await open(), 0, 3);
    expect(await readLeft(await open(disk.copy()))).toEqual(payloads(0, 3));
  });

  test("adds to what those before it may have lost, whoever saw that", async () => {
    await open();
    const second = disk.copy();
    await open(second);
    const third = await open(second.copy());
    expect(third.earlier).toMatchObject({ lost: 2000, lostLast: 1000 });
  });

  test("finds nothing missing after a stop in good order, and what could not be sent", async () => {
    const first = await open();
    await append(first, 0, 5);
    await first.close(counts({ unspooled: 3, drops: { ...NO_DROPS, "ring-full": 3 }, front: FIRST }), 5);
    const next = await open();
    expect(await readLeft(next)).toEqual(payloads(0, 5));
    expect(next.earlier).toEqual({ ...NOTHING, drops: { ...NO_DROPS, "ring-full": 3 } });
  });

  test("finds no segment whose clicks were all settled", async () => {
    const first = await open();
    first.settle(segmentOf(await append(first, 0, 5)), 5);
    await first.close(counts({ settled: 5 }), 0);
    expect(disk.names()).toEqual(["account"]);
    const next = await open();
    expect([next.left, next.earlier.lost]).toEqual([[], 0]);
  });

  test("reads on wherever its last segment was cut off, and counts a torn click", async () => {
    const first = await open();
    const { segment } = (await append(first, 0, 3)) as Place;
    const size = encodeFrames(payloads(0, 1)).length;
    for (let cut = 0; cut <= segment.size; cut += 1) {
      const after = disk.copy();
      const content = after.files.get(segment.path);
      if (content) content.bytes = content.bytes.subarray(0, cut);
      const next = await open(after);
      const there = Math.max(0, cut - HEADER_BLOCK);
      const whole = Math.floor(there / size);
      expect([await readLeft(next), sum(next)]).toEqual([payloads(0, whole), Math.ceil(there / size)]);
      expect(next.earlier.lost).toBeGreaterThanOrEqual(1000 - 3);
    }
  });

  test("knows by the next header how many clicks of a damaged segment are missing", async () => {
    const first = await open();
    const { segment } = (await append(first, 0, 20)) as Place;
    await append(first, 20, 6000);
    await append(first, 6020, 6000);
    const content = disk.files.get(segment.path);
    content?.bytes.fill(0, HEADER_BLOCK, HEADER_BLOCK + 5 * encodeFrames(payloads(0, 1)).length);
    const next = await open(disk.copy());
    expect(next.left.length).toBeGreaterThan(1);
    expect([sum(next), (await readLeft(next)).length]).toEqual([12_020, 12_015]);
  });

  test("goes on with what reached the disk before a power loss, and with nothing that is none", async () => {
    const first = await open();
    await append(first, 0, 3);
    const next = await open(disk.copy("synced"));
    expect(next.left).toEqual([]);
    expect(next.earlier.lost).toBe(1000);
  });
});

describe("a directory is refused, with the setting's name,", () => {
  const failing = (which: Operation, fault: Fault) =>
    disk.breakBy((operation) => (operation === which ? fault : undefined));

  test.each<[string, Operation, Fault]>([
    ["there is no such directory", "open", "ENOENT"],
    ["it is no directory", "open", "ENOTDIR"],
    ["it can only be read", "open", "EROFS"],
    ["this process may not write there", "open", "EACCES"],
    ["EIO: as the test said", "list", "EIO"],
  ])("when %s", async (reason, operation, fault) => {
    failing(operation, fault);
    const refusal = open();
    await expect(refusal).rejects.toThrow(ConfigError);
    await expect(refusal).rejects.toThrow(`CLICK_SPOOL_DIR cannot be used (/spool): ${reason}`);
  });

  test("when another process has it", async () => {
    const start = { incarnation: "x", at: 0 };
    const options = { directory: "/spool", maxBytes: 1, segmentBytes: 1, fs: disk.fs, start, now: () => 0 };
    const refusal = openSpool({ ...options, lock: async () => null, onTrouble: () => {} });
    await expect(refusal).rejects.toThrow("another process uses it");
  });

  test("when a later version wrote there", async () => {
    const file = Buffer.concat([encodeFrames(['{"format":2}']), Buffer.alloc(2048)]);
    disk.files.set("/spool/account", { bytes: file, synced: file });
    await expect(open()).rejects.toThrow("a later version of linkfence wrote there");
  });
});

describe("a start goes on", () => {
  test("without a segment that the disk does not give back, which stays where it is", async () => {
    const first = await open();
    const { segment } = (await append(first, 0, 3)) as Place;
    disk.breakBy((which, name) => (which === "read" && name.endsWith(".spool") ? "EIO" : undefined));
    const next = await open();
    expect(next.left).toEqual([]);
    expect(troubles).toEqual(["a segment that an earlier process left cannot be read, and stays where it is"]);
    expect(disk.files.has(segment.path)).toBe(true);
    expect(((await append(next, 3, 1)) as Place).segment.number).toBe(segment.number + 1);
  });

  test.each<[string, () => void]>([
    ["is damaged", () => disk.files.get("/spool/account")?.bytes.fill(1)],
    ["is zeroed", () => disk.files.get("/spool/account")?.bytes.fill(0)],
    ["is emptied", () => disk.files.set("/spool/account", { bytes: Buffer.alloc(0), synced: Buffer.alloc(0) })],
    ["is gone", () => disk.files.delete("/spool/account")],
  ])("where the account %s, and says that nobody knows how much is lost", async (_what, damage) => {
    await append(await open(), 0, 3);
    damage();
    const next = await open();
    expect([sum(next), next.earlier]).toEqual([3, { ...NOTHING, unknown: 1, isLastUnknown: true }]);
    await next.close(counts({ left: 3, front: FIRST }), 0);
    expect((await open()).earlier).toEqual({ ...NOTHING, unknown: 1 });
  });

  test("on a full disk, on which the account has its place already", async () => {
    const first = await open();
    await append(first, 0, 3);
    disk.breakBy((which, name) => (which === "write" && name !== "account" ? "ENOSPC" : undefined));
    const next = await open();
    expect(sum(next)).toBe(3);
    expect(await append(next, 3, 1)).toBe("refused");
    expect(next.stats().reserved).toBe(1000);
  });
});
