import { describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import fc from "fast-check";
import { createFakeTable, failure } from "../test-support/fake-table.ts";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { sampleClick, sampleClicks, sampleOrigin } from "../test-support/sample-clicks.ts";
import { createIntake } from "./intake.ts";
import { createWriter, type WriterOptions } from "./writer.ts";

const NOBODY_LEAVES = new AbortController().signal;

function openWriter(changes: Partial<WriterOptions> & { deadlineMs?: number } = {}) {
  const { deadlineMs = 60_000, ...rest } = changes;
  const intake = createIntake({ maxClicks: 10_000, maxBytes: 100_000_000, deadlineMs });
  const table = createFakeTable();
  const logger = createQuietLogger();
  const waits: number[] = [];
  const wait = async (ms: number) => {
    waits.push(ms);
  };
  const { insert, isolate } = table;
  const writer = createWriter({ intake, insert, isolate, batchMax: 1000, logger, wait, random: () => 0, ...rest });
  const offer = (clicks: readonly Click[], signal = NOBODY_LEAVES, sender = "test") =>
    intake.offer(clicks, signal, sampleOrigin(sender));
  return { intake, table, logger, waits, writer, offer };
}

describe("the writer", () => {
  test("stores what waits together in one transaction, and gives each request its own counts", async () => {
    const { table, writer, offer } = openWriter();
    const known = sampleClick();
    table.rows.set(known.id, known);
    const twice = sampleClick();
    const outcomes = [sampleClicks(3), [known, twice], [twice, twice]].map((clicks) => offer(clicks));
    writer.start();
    expect(await Promise.all(outcomes)).toEqual([
      { kind: "stored", inserted: 3, duplicate: 0, buried: 0, late: [], noRoom: [] },
      { kind: "stored", inserted: 1, duplicate: 1, buried: 0, late: [], noRoom: [] },
      { kind: "stored", inserted: 0, duplicate: 2, buried: 0, late: [], noRoom: [] },
    ]);
    expect(table.batches).toEqual([7]);
    await writer.stop();
  });

  test("parts a request that is larger than a transaction", async () => {
    const { table, writer, offer } = openWriter({ batchMax: 4 });
    const outcome = offer(sampleClicks(10));
    writer.start();
    expect(await outcome).toMatchObject({ inserted: 10 });
    expect(table.batches).toEqual([4, 4, 2]);
    await writer.stop();
  });

  test("tells of an outage once, and again when it turns into another", async () => {
    const { table, logger, writer, offer } = openWriter();
    table.failures.push("ECONNREFUSED", "ECONNREFUSED", "57P03", "57P03", "ECONNREFUSED");
    const outcome = offer(sampleClicks(1));
    writer.start();
    expect(await outcome).toMatchObject({ inserted: 1 });
    expect(logger.entries.map(({ fields }) => fields.sqlstate ?? fields.failures)).toEqual([
      "ECONNREFUSED",
      "57P03",
      "ECONNREFUSED",
      5,
    ]);
    await writer.stop();
  });

  test("keeps the clicks over transient failures, waiting longer each time", async () => {
    const { table, waits, writer, offer } = openWriter();
    table.failures.push("ECONNREFUSED", "57P03", "55P03", "40P01");
    const outcome = offer(sampleClicks(5));
    writer.start();
    expect(await outcome).toMatchObject({ inserted: 5 });
    expect(waits).toEqual([25, 50, 100, 200]);
    expect(writer.stats()).toMatchObject({
      retries: 4,
      rows: 5,
      failed: { ECONNREFUSED: 1, "57P03": 1, "55P03": 1, "40P01": 1 },
    });
    await writer.stop();
  });

  test("goes on waiting as long over the next batch while nothing has succeeded", async () => {
    const { table, waits, writer, offer } = openWriter({ batchMax: 1 });
    const leaver = new AbortController();
    table.failures.push(...Array.from({ length: 6 }, () => "ECONNREFUSED"));
    const first = offer([sampleClick()], leaver.signal);
    const second = offer([sampleClick()]);
    writer.start();
    leaver.abort();
    expect(await first).toMatchObject({ reason: "abandoned" });
    expect(await second).toMatchObject({ inserted: 1 });
    expect(waits).toEqual([25, 50, 100, 200, 400, 500]);
    await writer.stop();
  });

  test("finds the one click that cannot be stored, sets it aside by name, and stores its neighbours", async () => {
    const { table, logger, writer, offer } = openWriter();
    const bad = sampleClick({ code: "poison" });
    const clicks = sampleClicks(99).toSpliced(41, 0, bad);
    const outcomes = [offer(clicks), offer(sampleClicks(50), NOBODY_LEAVES, "other")];
    writer.start();
    expect(await Promise.all(outcomes)).toEqual([
      { kind: "stored", inserted: 99, duplicate: 0, buried: 1, late: [], noRoom: [] },
      { kind: "stored", inserted: 50, duplicate: 0, buried: 0, late: [], noRoom: [] },
    ]);
    expect([table.rows.size, [...table.dead.keys()]]).toEqual([149, [bad.id]]);
    expect(logger.entries).toEqual([
      expect.objectContaining({ fields: expect.objectContaining({ refused: 1, clickId: bad.id, sqlstate: "22021" }) }),
    ]);
    // All, the first sender's, the other's.
    expect([table.batches, table.steps]).toEqual([[150, 100, 50], [100]]);
    expect(writer.stats()).toMatchObject({ rows: 149, isolations: 1, suspects: 0 });
    await writer.stop();
  });

  test.each([
    ["before anything is looked through in one sender's clicks, stores the other's", "other", 0],
    ["without parting senders, as a control, looks through all of them first", "test", 12],
  ])("%s", async (_what, other, stepsBefore) => {
    const { table, writer, offer } = openWriter({ batchMax: 10_000 });
    const bad = [offer(sampleClicks(2000, { code: "poison" })), offer(sampleClicks(1000, { code: "poison" }))];
    let steps = -1;
    const good = offer(sampleClicks(50), NOBODY_LEAVES, other).then((outcome) => {
      steps = table.steps.length;
      return outcome;
    });
    writer.start();
    expect(await good).toMatchObject({ inserted: 50 });
    expect(steps).toBeGreaterThanOrEqual(stepsBefore);
    if (stepsBefore === 0) expect([steps, table.batches]).toEqual([0, [3050, 3000, 50]]);
    expect(await Promise.all(bad)).toMatchObject([{ buried: 2000 }, { buried: 1000 }]);
    await writer.stop();
  });

  test("stores what has come meanwhile before each step, and senders take turns", async () => {
    const turns: string[] = [];
    const { table, writer, offer } = openWriter({
      isolate: async (sender, suspects) => {
        turns.push(sender);
        if (turns.length === 2) void offer(sampleClicks(7), NOBODY_LEAVES, "late comer");
        return table.isolate(sender, suspects);
      },
    });
    const senders = ["one", "two"];
    const outcomes = senders.map((sender) => offer(sampleClicks(500, { code: "poison" }), NOBODY_LEAVES, sender));
    writer.start();
    await Promise.all(outcomes);
    expect(turns).toEqual(["one", "two", "one", "two"]);
    expect(table.batches).toEqual([1000, 500, 500, 7]);
    await writer.stop();
  });

  test("keeps what a step has settled over failures and deadlines, and looks no further for whom nobody waits", async () => {
    const leaver = new AbortController();
    const { table, waits, writer, offer } = openWriter({
      isolate: async (sender, suspects) => {
        const isolated = await table.isolate(sender, suspects);
        leaver.abort();
        return isolated;
      },
    });
    const outcome = offer(sampleClicks(600, { code: "poison" }), leaver.signal);
    table.failures.push("22021", "55P03");
    writer.start();
    expect(await outcome).toMatchObject({ reason: "abandoned" });
    await writer.stop();
    expect([waits, table.dead.size]).toEqual([[25], 250]);
  });

  test("tells clicks of days that are no longer from those stored before, in each request's own counts", async () => {
    const { table, writer, offer } = openWriter();
    const known = sampleClick();
    table.rows.set(known.id, known);
    const late = sampleClick({ code: "late" });
    const outcomes = [offer([late, known, sampleClick()]), offer([sampleClick(), late, late])];
    writer.start();
    expect(await Promise.all(outcomes)).toEqual([
      { kind: "stored", inserted: 1, duplicate: 1, buried: 0, late: [late], noRoom: [] },
      { kind: "stored", inserted: 1, duplicate: 0, buried: 0, late: [late, late], noRoom: [] },
    ]);
    expect(writer.stats().rows).toBe(2);
    await writer.stop();
  });

  test("without the search for it, as a control, lets that click sink all the others", async () => {
    const { table, writer, offer } = openWriter({ judge: () => "transient", deadlineMs: 20, wait: nextTurn });
    const outcome = offer([...sampleClicks(99), sampleClick({ code: "poison" })]);
    writer.start();
    expect(await outcome).toEqual({ kind: "given-back", reason: "deadline" });
    expect(table.rows.size).toBe(0);
    await writer.stop();
  });

  test("gives up a batch when every request in it has ended, and stops", async () => {
    const insert = () => Promise.reject(failure("ECONNREFUSED"));
    const { writer, offer } = openWriter({ insert, deadlineMs: 20, wait: nextTurn });
    const outcome = offer(sampleClicks(3));
    writer.start();
    expect(await outcome).toEqual({ kind: "given-back", reason: "deadline" });
    await writer.stop();
    expect(writer.stats().rows).toBe(0);
  });

  test("survives a fault of its own: the batch is left to its deadline and the next one is stored", async () => {
    const table = createFakeTable();
    let faults = 1;
    const { logger, writer, offer } = openWriter({
      deadlineMs: 50,
      insert: table.insert,
      random: () => {
        if (faults-- > 0) throw new TypeError("made up");
        return 0;
      },
    });
    table.failures.push("40001");
    const first = offer([sampleClick()]);
    writer.start();
    expect(await first).toEqual({ kind: "given-back", reason: "deadline" });
    expect(await offer([sampleClick()])).toMatchObject({ inserted: 1 });
    expect(logger.entries.some(({ level }) => level === "error")).toBe(true);
    await writer.stop();
  });

  test("stores everything that is queued before it stops", async () => {
    const { table, writer, offer } = openWriter({ batchMax: 10 });
    const outcomes = Array.from({ length: 20 }, () => offer(sampleClicks(7)));
    writer.start();
    await writer.stop();
    expect(table.rows.size).toBe(140);
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ inserted: 7 });
  });

  test("accounts for every click once, whatever fails and whatever comes twice", async () => {
    const code = fc.constantFrom("sample", "sample", "sample", "poison");
    const pick = fc.record({ index: fc.integer({ min: 0, max: 15 }), code });
    const requests = fc.array(fc.array(pick, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 6 });
    const failures = fc.array(fc.constantFrom("40P01", "ECONNRESET", "22P02", "53300"), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(requests, failures, fc.integer({ min: 1, max: 30 }), async (lists, codes, batchMax) => {
        // A small pool of ids, so that clicks repeat within and across requests; the id decides whether it is poison.
        const pool = lists.flat().reduce((known, { index, code }) => {
          if (!known.has(index)) known.set(index, sampleClick({ code }));
          return known;
        }, new Map<number, Click>());
        const { table, writer, offer } = openWriter({ batchMax });
        table.failures.push(...codes);
        const sent = lists.map((list) => list.flatMap(({ index }) => pool.get(index) ?? []));
        const outcomes = sent.map((clicks) => offer(clicks));
        writer.start();
        let inserted = 0;
        for (const [index, outcome] of (await Promise.all(outcomes)).entries()) {
          if (outcome.kind !== "stored") throw new Error(`request ${index} was given back`);
          expect(outcome.inserted + outcome.duplicate + outcome.buried).toBe(sent[index]?.length);
          inserted += outcome.inserted;
        }
        expect(inserted).toBe(table.rows.size);
        expect(writer.stats().rows).toBe(table.rows.size);
        await writer.stop();
      }),
    );
  });
});

/** Lets timers run between two attempts. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
