// A click has one end: what was dropped is not found again, and what is found again was not dropped, whenever a process ends.
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { accountPosition, decodeAccount, encodeAccount } from "../spool/account.ts";
import { createDisk, type Disk } from "../spool/disk.fixture.ts";
import { readFrames } from "../spool/frame.ts";
import { AWAY, createIngest, gap, REFUSED, startPath, stopPaths, stored } from "./click-path.fixture.ts";

afterEach(stopPaths);

type Started = Awaited<ReturnType<typeof startPath>>;
const told = ({ path }: Started, reason: string) =>
  path.dropReport().totals.find((each) => each.reason === reason)?.total ?? 0;

/** Starts the next process, whose ingest stores everything, and waits until it has. */
async function finish(disk: Disk) {
  const ingest = createIngest();
  const last = await startPath({ disk, answer: ingest.store });
  await last.settled();
  expect(gap(last.path)).toBe(0);
  return { last, rows: ingest.rows.size };
}

describe("clicks that the ingest refuses for good", () => {
  test("are told of when it is written down that nobody sends them again, and not before", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => REFUSED });
    first.click(200);
    await first.settled();
    // A kill at once: they are sent again, and were not told of.
    const early = disk.copy();
    const toldEarly = told(first, "batch-refused");
    await until(() => told(first, "batch-refused") === 200);
    const late = disk.copy();
    expect(toldEarly + (await finish(early)).rows).toBe(200);
    const { last, rows } = await finish(late);
    expect([rows, told(last, "batch-refused"), last.path.ledger().recovered]).toEqual([0, 200, 0]);
  });

  test("control: what is told as it is counted counts twice after a kill", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => REFUSED });
    disk.breakBy((which, name) => (which === "write" && name === "account" ? "EIO" : undefined));
    first.click(200);
    await first.settled();
    const counted = first.path.ledger().dropped["batch-refused"];
    expect(counted + (await finish(disk.copy())).rows).toBe(400);
  });
});

describe("clicks that cannot be read", () => {
  const cutOff = (disk: Disk) => {
    for (const path of disk.segments()) {
      const content = disk.files.get(path);
      if (content) content.bytes = content.bytes.subarray(0, -10);
    }
  };

  test("are damaged once, however many processes find them so before the others are stored", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => AWAY });
    first.click(20);
    await first.drained();
    const killed = disk.copy();
    cutOff(killed);
    for (let stop = 0; stop < 3; stop += 1) {
      const { path, spool } = await startPath({ disk: killed, answer: () => AWAY });
      expect(spool?.earlier.damaged).toBe(1);
      await until(() => path.stats().failures > 0);
      await path.stop(0);
      expect(gap(path)).toBe(0);
    }
    const { last, rows } = await finish(killed);
    expect([rows, last.path.ledger().dropped.damaged]).toEqual([19, 1]);
    await last.path.stop(0);
    expect(told(await startPath({ disk: killed, answer: () => AWAY }), "damaged")).toBe(1);
  });

  test("are not counted again by who reads on behind them; control: without the account they are", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, capacity: 2000, answer: () => AWAY });
    first.click(1500);
    await first.path.stop(0);
    const [path = ""] = disk.segments();
    disk.files.get(path)?.bytes.fill(0, 600, 5000);
    // Stores the first batch alone.
    const second = await startPath({
      disk,
      answer: ({ length }, attempt) => (attempt === 1 ? stored(length) : AWAY),
    });
    await until(() => second.path.stats().failures > 0);
    // What was settled stays.
    disk.breakBy((which) => (which === "remove" ? "EIO" : undefined));
    await second.path.stop(0);
    disk.mend();
    const { damaged } = second.path.ledger().dropped;
    const withoutAccount = disk.copy();
    withoutAccount.files.delete("/spool/account");
    expect(damaged).toBeGreaterThan(0);
    const { last, rows } = await finish(disk);
    expect([last.path.ledger().dropped.damaged, told(last, "damaged")]).toEqual([0, damaged]);
    expect(damaged + second.path.ledger().inserted + rows).toBe(1500);
    expect((await finish(withoutAccount)).last.path.ledger().dropped.damaged).toBe(damaged);
  });
});

test("clicks dropped when a write failed half way and memory was full are not found; control: some are in the file", async () => {
  const disk = createDisk();
  const first = await startPath({ disk, capacity: 4, answer: () => AWAY });
  const group = async () => {
    first.click(4);
    await first.drained();
    return first.path.stats().memoryBytes;
  };
  // Until groups stay in segments alone.
  for (let bytes = await group(), before = -1; bytes !== before; bytes = await group()) before = bytes;
  const before = disk.copy();
  let isHalf = true;
  disk.breakBy((which, name) => {
    if (which !== "write" || !name.endsWith(".spool") || !isHalf) return undefined;
    isHalf = false;
    return "short";
  });
  await group();
  disk.mend();
  await until(() => told(first, "spool-full") > 0);
  const frames = (of: Disk) =>
    of
      .segments()
      .flatMap(
        (path) => readFrames(of.files.get(path)?.bytes.subarray(512) ?? Buffer.alloc(0), { last: true }).payloads,
      );
  expect(frames(disk).length).toBeGreaterThan(frames(before).length);
  const { accepted, dropped } = first.path.ledger();
  const lost = dropped["spool-full"] + dropped["ring-full"] + first.path.stats().atRisk;
  expect((await finish(disk.copy())).rows + lost).toBe(accepted);
});

describe("clicks given up at a stop, whose writes failed half way", () => {
  /** Two segments with ten clicks that were stored, and half of ten that were not; two processes stop, one is killed. */
  async function endThrice() {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => AWAY });
    for (const fault of [undefined, "short", undefined, "short"] as const) {
      disk.breakBy((which, name) => (which === "write" && name.endsWith(".spool") ? fault : undefined));
      first.click(10);
      await first.drained();
    }
    disk.mend();
    await first.path.stop(0);
    expect(first.path.ledger()).toMatchObject({ accepted: 40, inFlight: 20, dropped: { stopped: 20 } });
    const second = await startPath({ disk, answer: () => AWAY });
    await second.path.stop(0);
    await startPath({ disk, answer: () => AWAY });
    return disk.copy();
  }

  test("are found by no process after it, however many segments hold parts of them", async () => {
    const { last, rows } = await finish(await endThrice());
    expect([rows, told(last, "stopped"), told(last, "damaged")]).toEqual([20, 20, 0]);
  });

  test("control: where it is not written down what to leave out, some of them are stored as well", async () => {
    const disk = await endThrice();
    const account = disk.files.get("/spool/account");
    const written = decodeAccount(account?.bytes ?? Buffer.alloc(0));
    if (written === null || account === undefined) throw new Error("there is no account");
    encodeAccount({ ...written, cuts: [] }).copy(account.bytes, accountPosition(written.seq));
    const { last, rows } = await finish(disk);
    expect(rows + told(last, "stopped")).toBeGreaterThan(40);
  });
});

describe("a segment that is removed while its clicks wait", () => {
  test("is written again from memory: a kill loses none of them", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => AWAY });
    first.click(300);
    await first.drained();
    disk.files.clear();
    await until(
      () => disk.segments().length > 0 && disk.files.has("/spool/account") && first.path.stats().atRisk === 0,
    );
    expect((await finish(disk.copy())).rows).toBe(300);
  });

  test("and whose clicks are in no memory, is read by its descriptor, and they are at risk until then", async () => {
    const disk = createDisk();
    let isAway = true;
    const ingest = createIngest();
    const first = await startPath({
      ...{ disk, capacity: 4 },
      answer: (clicks) => (isAway ? AWAY : ingest.store(clicks)),
    });
    for (let turn = 0; turn < 20; turn += 1) {
      first.click(4);
      await first.drained();
    }
    disk.files.clear();
    await until(() => disk.files.has("/spool/account") && first.path.stats().atRisk > 0);
    const killed = await startPath({ disk: disk.copy(), answer: () => AWAY });
    const { recovered } = killed.path.ledger();
    expect(killed.spool?.earlier.lost).toBeGreaterThanOrEqual(80 - recovered);
    isAway = false;
    await first.settled();
    expect(first.path.ledger()).toMatchObject({ accepted: 80, inserted: 80, dropped: { damaged: 0 } });
    expect([gap(first.path), first.path.stats().atRisk]).toEqual([0, 0]);
  });
});
