import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import fc from "fast-check";
import { createDisk } from "../spool/disk.fixture.ts";
import { AWAY, createIngest, gap, REFUSED, startPath, stopPaths, stored, TOO_LARGE } from "./click-path.fixture.ts";

afterEach(stopPaths);

describe.each([
  ["without a spool", () => ({})],
  ["with a spool", () => ({ disk: createDisk() })],
])("%s", (_what, how) => {
  test("a batch is kept until it is stored, and sent again with the same ids", async () => {
    const { path, sent, troubles, click, settled } = await startPath({
      ...how(),
      answer: ({ length }, attempt) => (attempt < 3 ? AWAY : stored(0, length)),
    });
    click(3);
    await settled();
    expect(sent).toHaveLength(3);
    expect(sent[0]).toHaveLength(3);
    expect(sent).toEqual(Array(3).fill(sent[0]));
    expect(path.ledger()).toMatchObject({ accepted: 3, inserted: 0, duplicate: 3, inFlight: 0 });
    expect(troubles).toEqual(["away", null]);
  });

  test("a batch that the ingest will never take is dropped and counted, and the next one is sent", async () => {
    const { path, click, settled } = await startPath({
      ...how(),
      answer: ({ length }, attempt) => (attempt === 1 ? REFUSED : stored(length)),
    });
    click(1200);
    await settled();
    const { inserted, dropped } = path.ledger();
    expect(dropped["batch-refused"]).toBeGreaterThan(0);
    expect(inserted + dropped["batch-refused"]).toBe(1200);
  });

  test("a batch that is too large for somebody on the way is divided, and so are those after it", async () => {
    const { path, sent, click, settled } = await startPath({
      ...how(),
      answer: ({ length }) => (length > 37 ? TOO_LARGE : stored(length)),
    });
    click(1200);
    await settled();
    expect(path.ledger()).toMatchObject({ inserted: 1200, dropped: { "batch-refused": 0 } });
    expect([gap(path), path.stats().memoryBytes]).toEqual([0, 0]);
    expect(sent.filter(({ length }) => length > 37).length).toBeLessThan(8);
  });

  test("a single click that is too large is dropped and counted", async () => {
    const { path, click, settled } = await startPath({ ...how(), answer: () => TOO_LARGE });
    click(5);
    await settled();
    expect(path.ledger()).toMatchObject({ inserted: 0, dropped: { "batch-refused": 5 } });
  });

  test("a stop sends what is left", async () => {
    const { path, click } = await startPath({ ...how(), answer: ({ length }) => stored(length) });
    click(1500);
    await path.stop(10_000);
    expect(path.ledger()).toMatchObject({ accepted: 1500, inserted: 1500, inFlight: 0 });
  });

  test("every click is accounted for at every moment, whatever the ingest answers", async () => {
    const answers = fc.array(fc.constantFrom("stored", "failed", "refused", "large"), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 0, max: 20 }), async (list, count) => {
        const gaps: number[] = [];
        const { path, click } = await startPath({
          ...how(),
          capacity: 8,
          answer: ({ length }, attempt) => {
            gaps.push(gap(path));
            const answer = list[(attempt - 1) % list.length];
            if (answer === "large") return TOO_LARGE;
            return answer === "stored" ? stored(length) : answer === "failed" ? AWAY : REFUSED;
          },
        });
        click(count);
        gaps.push(gap(path));
        await path.stop(5);
        gaps.push(gap(path));
        expect(gaps.filter((each) => each !== 0)).toEqual([]);
        expect(path.ledger().accepted).toBe(count);
      }),
      { numRuns: 20 },
    );
  });
});

test("without a spool a stop counts what could not be sent in time", async () => {
  const { path, told, click } = await startPath({ answer: () => AWAY });
  click(1500);
  await path.stop(20);
  expect(path.ledger()).toMatchObject({ accepted: 1500, dropped: { stopped: 1500 }, inFlight: 0 });
  expect(told).toMatchObject([{ totals: [{ reason: "stopped", total: 1500 }] }]);
});

describe("the spool", () => {
  test("has a click before it is sent", async () => {
    const disk = createDisk();
    const onDisk = () => [...disk.files.values()].map(({ bytes }) => bytes.toString("latin1")).join("");
    const missing: string[] = [];
    const { click, settled } = await startPath({
      disk,
      answer: (clicks) => {
        missing.push(...clicks.map(({ id }) => id).filter((id) => !onDisk().includes(id)));
        return stored(clicks.length);
      },
    });
    click(700);
    await settled();
    expect(missing).toEqual([]);
  });

  test("keeps what a stop could not send, and the next process sends it before anything new", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, answer: () => AWAY });
    first.click(1500);
    await first.path.stop(20);
    expect(first.path.ledger()).toMatchObject({ accepted: 1500, inFlight: 1500, dropped: { stopped: 0 } });

    const ingest = createIngest();
    const next = await startPath({ disk, answer: ingest.store });
    next.click(10);
    await next.settled();
    expect(next.path.ledger()).toMatchObject({ accepted: 10, recovered: 1500, inserted: 1510, duplicate: 0 });
    expect(
      next.sent
        .flat()
        .slice(0, 1500)
        .every((id) => !next.sent.at(-1)?.slice(-10).includes(id)),
    ).toBe(true);
    expect(next.spool?.earlier.lost).toBe(0);
  });

  test("gives a killed process's clicks to the next one, those that were stored already too: they count as duplicate", async () => {
    const disk = createDisk();
    const ingest = createIngest();
    const first = await startPath({ disk, answer: ingest.store });
    first.click(400);
    await first.settled();
    const killed = disk.copy();
    const next = await startPath({ disk: killed, answer: ingest.store });
    await next.settled();
    expect(next.path.ledger()).toMatchObject({ recovered: 400, inserted: 0, duplicate: 400 });
    expect([ingest.rows.size, gap(next.path)]).toEqual([400, 0]);
  });

  test("reports what processes before it dropped, too, and as a bound what their kills took, under one name", async () => {
    const disk = createDisk();
    const first = await startPath({ disk, capacity: 4, answer: () => AWAY });
    const { incarnation, at: since } = first.start;
    expect(first.path.dropReport()).toEqual({ incarnation, since, totals: [] });
    first.click(10);
    const own = { reason: "ring-full", total: 6 };
    expect(first.path.dropReport()).toEqual({ incarnation, since, totals: [own] });
    await first.drained();
    const killed = await startPath({ disk: disk.copy(), answer: () => AWAY });
    const bound = killed.spool?.earlier.lost ?? 0;
    expect(bound).toBeGreaterThanOrEqual(6);
    const told = killed.path.dropReport();
    expect(told).toMatchObject({ incarnation, since });
    expect(told.totals).toContainEqual({ reason: "killed", total: bound });
    await first.path.stop(0);
    const next = await startPath({ disk, capacity: 4, answer: () => AWAY });
    next.click(5);
    expect(next.path.dropReport()).toEqual({ incarnation, since, totals: [{ ...own, total: 7 }] });
  });

  test("takes what memory has no room for, and gives it back in order", async () => {
    let isAway = true;
    const ingest = createIngest();
    // Room for a few groups in memory.
    const disk = createDisk();
    const { path, click, drained, settled, sent } = await startPath({
      ...{ disk, capacity: 4 },
      answer: (clicks) => (isAway ? AWAY : ingest.store(clicks)),
    });
    for (let turn = 0; turn < 100; turn += 1) {
      click(4);
      await drained();
      expect(path.stats().memoryBytes).toBeLessThanOrEqual(2048);
    }
    isAway = false;
    await settled();
    expect(path.ledger()).toMatchObject({ accepted: 400, inserted: 400, duplicate: 0 });
    const order = [...new Set(sent.flat())].map((id) => Number(id.split("-")[1]));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(path.stats().memoryBytes).toBe(0);
  });

  test("that is full leaves clicks to memory, drops the others by reason, and takes some again when it has room", async () => {
    let isAway = true;
    const { path, click, drained, settled, spool } = await startPath({
      ...{ disk: createDisk(), capacity: 100, maxBytes: 65_536 },
      answer: ({ length }) => (isAway ? AWAY : stored(length)),
    });
    while (path.ledger().dropped["spool-full"] === 0) {
      click(100);
      await drained();
    }
    expect(gap(path)).toBe(0);
    const appended = spool?.stats().appends ?? 0;
    isAway = false;
    await settled();
    await until(() => {
      click(1);
      return (spool?.stats().appends ?? 0) > appended;
    });
    await settled();
    expect([gap(path), path.ledger().duplicate]).toEqual([0, 0]);
  });

  test("that cannot be read back any more counts its clicks as damaged", async () => {
    let isAway = true;
    const disk = createDisk();
    const { path, click, drained, settled } = await startPath({
      ...{ disk, capacity: 1 },
      answer: ({ length }) => (isAway ? AWAY : stored(length)),
    });
    for (let turn = 0; turn < 20; turn += 1) {
      click(1);
      await drained();
    }
    for (const [name, { bytes }] of disk.files) if (name.endsWith(".spool")) bytes.fill(0, 1500);
    isAway = false;
    await settled();
    const { inserted, dropped } = path.ledger();
    expect([dropped.damaged > 0, inserted > 0, inserted + dropped.damaged]).toEqual([true, true, 20]);
  });
});
