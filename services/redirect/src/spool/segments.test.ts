import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CUTS_MAX, HEADER_BLOCK } from "./account.ts";
import { createDisk, type Disk, type Fault } from "./disk.fixture.ts";
import { NO_DROPS } from "./drops.ts";
import { encodeFrames, splitFrames } from "./frame.ts";
import type { Place, Segment, Stored } from "./segment.ts";
import { createSegments, type Segments, type SegmentsOptions } from "./segments.ts";

const KIB = 1024;
/** Of 100 clicks with one byte more than a KiB each, frame included: three of them fill a segment of the default below. */
const GROUP = encodeFrames(Array.from({ length: 100 }, () => `"${"x".repeat(KIB - 9)}"`));

let disk: Disk;
let segments: Segments;
let mono: number;
let troubles: string[];
let nameless: Segment[];

beforeEach(() => {
  disk = createDisk();
  mono = 0;
  troubles = [];
  nameless = [];
  segments = create();
});
afterEach(() => void jest.useRealTimers());

const create = (over: Partial<SegmentsOptions> = {}) =>
  createSegments({
    ...{
      fs: disk.fs,
      directory: "/spool",
      maxBytes: 4 * 1024 * KIB,
      segmentBytes: 400 * KIB,
      firstNumber: 1,
      cuts: [],
    },
    header: () => ({ incarnation: "me", unspooled: 0, drops: NO_DROPS }),
    now: () => mono,
    settledBefore: () => Number.POSITIVE_INFINITY,
    onNameless: (segment) => void nameless.push(segment),
    onTrouble: (what) => void troubles.push(what),
    ...over,
  });

async function close(): Promise<void> {
  await segments.seal();
  await segments.close();
}
const append = () => segments.append(GROUP, 100);
function place(stored: Stored): Place {
  if (typeof stored === "string") throw new Error(`it was not stored: ${stored}`);
  return stored;
}
const on = (operation: string, suffix: string, fault: Fault) =>
  disk.breakBy((which, name) => (which === operation && name.endsWith(suffix) ? fault : undefined));
const callsOf = (what: string) => disk.calls.filter((call) => call === what).length;

describe("a group", () => {
  test("lies behind the header by one write, and is read back as it was", async () => {
    const { segment, from, to } = place(await append());
    expect([from, to]).toEqual([HEADER_BLOCK, HEADER_BLOCK + GROUP.length]);
    expect(callsOf("write clicks-000000000001.spool")).toBe(2);
    expect(await segments.read(segment, from, Buffer.alloc(to - from))).toEqual(GROUP);
    expect(segments.stats()).toMatchObject({ appends: 1, segments: 1, bytes: to, writable: true });
  });

  test("that no longer fits begins a segment, and a sealed one goes when all of it is settled", async () => {
    const places = [];
    for (let count = 0; count < 4; count += 1) places.push(place(await append()));
    expect(places.map(({ segment }) => segment.number)).toEqual([1, 1, 1, 2]);
    for (const { segment } of places.slice(0, 2)) segments.settle(segment, 100);
    expect(disk.segments()).toHaveLength(2);
    segments.settle(places[0]?.segment as Place["segment"], 100);
    await close();
    expect(disk.names()).toEqual(["clicks-000000000002.spool"]);
    expect(callsOf("sync clicks-000000000002.spool")).toBe(1);
  });

  test("in a segment of some size that is settled begins another one, so that little is sent twice after a crash", async () => {
    for (let count = 0; count < 2; count += 1) segments.settle(place(await append()).segment, 100);
    const third = place(await append());
    expect(third.segment.number).toBe(1);
    segments.settle(third.segment, 100);
    expect(place(await append()).segment.number).toBe(2);
    await close();
    expect(disk.names()).toEqual(["clicks-000000000002.spool"]);
  });

  test("beyond the bound of bytes is refused, until a segment goes", async () => {
    segments = create({ maxBytes: 450 * KIB, segmentBytes: 1 });
    const places = [];
    for (let count = 0; count < 4; count += 1) places.push(place(await append()));
    expect(await append()).toBe("refused");
    expect(segments.stats()).toMatchObject({ full: 1, writable: true });
    segments.settle(places[0]?.segment as Place["segment"], 100);
    expect(place(await append()).segment.number).toBe(5);
  });
});

describe("a disk that fails", () => {
  test.each<[Fault]>([["ENOSPC"], ["EIO"], ["short"]])(
    "by %s while writing: the segment is never written to or flushed again, is read, and goes when it is settled",
    async (fault) => {
      const first = place(await append());
      on("write", "1.spool", fault);
      expect(await append()).toBe("uncertain");
      expect(segments.stats()).toMatchObject({ abandoned: { write: 1, sync: 0, name: 0 }, writable: false });
      const written = callsOf("write clicks-000000000001.spool");
      segments.sync();
      expect(place(await append()).segment.number).toBe(2);
      expect(segments.stats().writable).toBe(true);
      expect(callsOf("write clicks-000000000001.spool")).toBe(written);
      expect(callsOf("sync clicks-000000000001.spool")).toBe(0);
      expect(await segments.read(first.segment, first.from, Buffer.alloc(GROUP.length))).toEqual(GROUP);
      segments.settle(first.segment, 100);
      await close();
      expect(disk.names()).toEqual(["clicks-000000000002.spool"]);
    },
  );

  test("in the first group of a segment, again and again, leaves nothing behind, and is tried again", async () => {
    await close();
    segments = create({ settledBefore: () => 0 });
    disk.breakBy((which, name) =>
      which === "write" && name !== "" && callsOf(`write ${name}`) > 1 ? "short" : undefined,
    );
    for (let count = 0; count < 2 * CUTS_MAX; count += 1) {
      expect(await append()).toBe("uncertain");
      mono += 1000;
      await until(() => disk.names().length === 0);
    }
    segments.disown();
    expect(segments.cuts()).toEqual([]);
    disk.mend();
    expect(place(await append()).segment.number).toBe(2 * CUTS_MAX + 1);
  });

  test("behind clicks that wait is tried as often as can be written down, and again when some have come to their end", async () => {
    const places: Place[] = [];
    for (let number = 1; number <= CUTS_MAX; number += 1) {
      places.push(place(await append()));
      on("write", `${number}.spool`, "short");
      expect(await append()).toBe("uncertain");
    }
    expect(segments.cuts()).toEqual([]);
    segments.disown();
    expect(segments.cuts()).toEqual(places.map(({ segment, to }) => [segment.number, to]));
    expect([await append(), segments.stats().writable]).toEqual(["refused", false]);
    segments.settle((places[0] as Place).segment, 100);
    await until(() => segments.cuts().length < CUTS_MAX);
    expect(place(await append()).segment.number).toBe(CUTS_MAX + 1);
    expect(segments.stats().writable).toBe(true);
  });

  test("while flushing: the segment is abandoned, and nothing is flushed by that descriptor again", async () => {
    const first = place(await append());
    on("sync", "1.spool", "EIO");
    segments.sync();
    await until(() => segments.stats().abandoned.sync === 1);
    expect(place(await append()).segment.number).toBe(2);
    segments.sync();
    await close();
    expect(callsOf("sync clicks-000000000001.spool")).toBe(1);
    expect(callsOf("sync clicks-000000000002.spool")).toBe(1);
    expect(splitFrames(await segments.read(first.segment, first.from, Buffer.alloc(GROUP.length)))).toHaveLength(100);
  });

  test("for good is asked once a second, and leaves no files behind", async () => {
    disk.breakBy((which) => (which === "write" ? "ENOSPC" : undefined));
    for (let count = 0; count < 5; count += 1) expect(await append()).toBe("refused");
    expect(disk.calls.filter((call) => call.startsWith("open"))).toHaveLength(2);
    mono += 1000;
    expect(await append()).toBe("refused");
    expect(disk.calls.filter((call) => call.startsWith("open"))).toHaveLength(3);
    disk.mend();
    mono += 1000;
    expect(place(await append()).segment.number).toBe(4);
    await close();
    expect(disk.names()).toEqual(["clicks-000000000004.spool"]);
  });

  test("to end an operation is left alone after a second, and used again when it has ended", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
    const first = place(await append());
    on("write", ".spool", "hang");
    const stored = append();
    await jest.advanceTimersByTimeAsync(1000);
    expect(await stored).toBe("uncertain");
    expect(segments.stats().writable).toBe(false);
    const calls = disk.calls.length;
    expect(await append()).toBe("refused");
    expect(disk.calls).toHaveLength(calls);
    disk.release();
    await new Promise(setImmediate);
    expect(place(await append()).segment.number).toBe(2);
    expect(splitFrames(await segments.read(first.segment, first.from, Buffer.alloc(GROUP.length)))).toHaveLength(100);
  });

  test("to flush holds up no group, and a stop for two seconds", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
    await append();
    on("sync", ".spool", "hang");
    segments.sync();
    expect(place(await append()).segment.number).toBe(1);
    const closed = close();
    await jest.advanceTimersByTimeAsync(2000);
    await closed;
    disk.release();
  });

  test("to remove a segment leaves it to the next process, and says so", async () => {
    const { segment } = place(await append());
    on("remove", ".spool", "EROFS");
    segments.settle(segment, 100);
    await close();
    expect(segments.stats().removeFailures).toBe(1);
    expect(troubles).toEqual(["a segment that is done with cannot be removed, and will be sent again"]);
  });
});

/** Until something under way here has ended; no time passes. */
async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100 && !holds(); turn += 1) await new Promise(setImmediate);
  expect(holds()).toBe(true);
}
