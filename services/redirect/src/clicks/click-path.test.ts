// The way of a click behind the ring, on a disk and an ingest that do what the test says.
import { afterEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { waitFor } from "@linkfence/testkit";
import fc from "fast-check";
import { makeEntry } from "../domain/entry.ts";
import { createDisk, type Disk } from "../spool/disk.fixture.ts";
import { openSpool } from "../spool/open-spool.ts";
import { type ClickPath, type ClickPathOptions, createClickPath } from "./click-path.ts";
import { createClickRing } from "./click-ring.ts";
import type { SendResult } from "./click-sender.ts";

const row = { target: "https://example.com/", state: "ACTIVE", version: 3, remainingMs: null, owner: "ann" } as const;
const entry = makeEntry("abc", row, { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 });
const nobody = { referrer: undefined, userAgent: undefined, prefetch: false, origin: undefined };

const AWAY: SendResult = { kind: "failed", reason: "away" };
const REFUSED: SendResult = { kind: "refused", reason: "the ingest answered 400" };
const stored = (inserted: number, duplicate = 0): SendResult => ({
  kind: "stored",
  result: { received: inserted + duplicate, inserted, duplicate, refused: 0 },
});

/** Stores each id once, as the real one does. */
function createIngest() {
  const rows = new Set<string>();
  return {
    rows,
    store(clicks: readonly Click[]): SendResult {
      const before = rows.size;
      for (const { id } of clicks) rows.add(id);
      const inserted = rows.size - before;
      return stored(inserted, clicks.length - inserted);
    },
  };
}

type Trial = {
  disk?: Disk;
  capacity?: number;
  maxBytes?: number;
  answer: (clicks: readonly Click[], attempt: number) => SendResult;
};

const running: ClickPath[] = [];
afterEach(async () => {
  for (const path of running.splice(0)) await path.stop(0);
});

let ids = 0;
async function start({ disk, capacity = 2000, maxBytes = 10_000_000, answer }: Trial) {
  const ring = createClickRing(capacity);
  const sent: string[][] = [];
  const troubles: (string | null)[] = [];
  const now = () => performance.now();
  const place = { directory: "/spool", maxBytes, segmentBytes: 100_000 };
  const lock = async () => ({ release: async () => {} });
  const spool =
    disk === undefined
      ? null
      : await openSpool({ ...place, fs: disk.fs, lock, incarnation: `p${++ids}`, now, onTrouble: () => {} });
  const options: ClickPathOptions = {
    ...{ ring, capacity, spool, now, random: () => 0.99, countryOf: () => undefined },
    send: async (payloads) => {
      const clicks = payloads.map((payload) => JSON.parse(payload.toString()) as Click);
      sent.push(clicks.map(({ id }) => id));
      return answer(clicks, sent.length);
    },
    newClickId: (at) => `${at}-${++ids}`,
    onTrouble: (reason) => troubles.push(reason),
  };
  const path = createClickPath(options);
  running.push(path);
  const click = (count: number) => {
    for (let at = 0; at < count; at += 1) ring.push(entry, at, nobody);
  };
  const drained = () => waitFor("an empty ring", () => path.stats().inRing === 0);
  const settled = () => waitFor("the end of every click", () => path.ledger().inFlight === 0);
  return { path, spool, sent, troubles, click, drained, settled };
}

/** The right side of the ledger less its left one. */
function gap(path: ClickPath): number {
  const { accepted, recovered, inserted, duplicate, deadLettered, refused, dropped, inFlight } = path.ledger();
  const lost = Object.values(dropped).reduce((total, count) => total + count, 0);
  return inserted + duplicate + deadLettered + refused + lost + inFlight - accepted - recovered;
}

describe.each([
  ["without a spool", () => ({})],
  ["with a spool", () => ({ disk: createDisk() })],
])("%s", (_what, how) => {
  test("a batch is kept until it is stored, and sent again with the same ids", async () => {
    const { path, sent, troubles, click, settled } = await start({
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
    const { path, click, settled } = await start({
      ...how(),
      answer: ({ length }, attempt) => (attempt === 1 ? REFUSED : stored(length)),
    });
    click(1200);
    await settled();
    const { inserted, dropped } = path.ledger();
    expect(dropped["batch-refused"]).toBeGreaterThan(0);
    expect(inserted + dropped["batch-refused"]).toBe(1200);
  });

  test("a stop sends what is left", async () => {
    const { path, click } = await start({ ...how(), answer: ({ length }) => stored(length) });
    click(1500);
    await path.stop(10_000);
    expect(path.ledger()).toMatchObject({ accepted: 1500, inserted: 1500, inFlight: 0 });
  });

  test("every click is accounted for at every moment, whatever the ingest answers", async () => {
    const answers = fc.array(fc.constantFrom("stored", "failed", "refused"), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 0, max: 20 }), async (list, count) => {
        const gaps: number[] = [];
        const { path, click } = await start({
          ...how(),
          capacity: 8,
          answer: ({ length }, attempt) => {
            gaps.push(gap(path));
            const answer = list[(attempt - 1) % list.length];
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
  const { path, click } = await start({ answer: () => AWAY });
  click(1500);
  await path.stop(20);
  expect(path.ledger()).toMatchObject({ accepted: 1500, dropped: { stopped: 1500 }, inFlight: 0 });
});

describe("the spool", () => {
  test("has a click before it is sent", async () => {
    const disk = createDisk();
    const onDisk = () => [...disk.files.values()].map(({ bytes }) => bytes.toString("latin1")).join("");
    const missing: string[] = [];
    const { click, settled } = await start({
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
    const first = await start({ disk, answer: () => AWAY });
    first.click(1500);
    await first.path.stop(20);
    expect(first.path.ledger()).toMatchObject({ accepted: 1500, inFlight: 1500, dropped: { stopped: 0 } });

    const ingest = createIngest();
    const next = await start({ disk, answer: ingest.store });
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
    const first = await start({ disk, answer: ingest.store });
    first.click(400);
    await first.settled();
    const killed = disk.copy();
    const next = await start({ disk: killed, answer: ingest.store });
    await next.settled();
    expect(next.path.ledger()).toMatchObject({ recovered: 400, inserted: 0, duplicate: 400 });
    expect([ingest.rows.size, gap(next.path)]).toEqual([400, 0]);
  });

  test("takes what memory has no room for, and gives it back in order", async () => {
    let isAway = true;
    const ingest = createIngest();
    // Room for a few groups in memory.
    const disk = createDisk();
    const { path, click, drained, settled, sent } = await start({
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
    const { path, click, drained, settled, spool } = await start({
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
    click(100);
    await settled();
    expect(spool?.stats().appends).toBeGreaterThan(appended);
    expect([gap(path), path.ledger().duplicate]).toEqual([0, 0]);
  });

  test("that cannot be read back any more counts its clicks as damaged", async () => {
    let isAway = true;
    const disk = createDisk();
    const { path, click, drained, settled } = await start({
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

  test("of any disk and any ingest: kill after kill, nothing is counted twice, and what is missing is within the bound", async () => {
    const fault = fc.constantFrom("EIO", "ENOSPC", "short", undefined, undefined, undefined);
    const life = fc.record({
      clicks: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 5 }),
      faults: fc.array(fault, { minLength: 1, maxLength: 9 }),
      away: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
        let disk = createDisk();
        const ingest = createIngest();
        const accepted = { count: 0, dropped: 0 };
        for (const { clicks, faults, away } of lives) {
          let calls = 0;
          let alive = true;
          // The bound holds while the account can be written.
          disk.breakBy((which, name) =>
            /write|^sync$/.test(which) && name !== "account" ? faults[calls++ % faults.length] : undefined,
          );
          const { path, click, drained } = await start({
            ...{ disk, capacity: 30 },
            answer: (batch, attempt) => (!alive || (away && attempt % 2 === 1) ? AWAY : ingest.store(batch)),
          });
          for (const count of clicks) {
            click(count);
            expect(gap(path)).toBe(0);
            if (count % 2 === 0) await drained();
          }
          const { dropped } = path.ledger();
          accepted.count += path.ledger().accepted;
          accepted.dropped += dropped["ring-full"] + dropped["spool-full"];
          // The kill: the next process has the disk as it is now, and this one can do it no more harm.
          alive = false;
          disk = disk.copy();
        }
        const { path, spool, settled } = await start({ disk, answer: ingest.store });
        await settled();
        expect(gap(path)).toBe(0);
        const missing = accepted.count - accepted.dropped - ingest.rows.size;
        expect(missing).toBeLessThanOrEqual((spool?.earlier.lost ?? 0) + path.ledger().dropped.damaged);
        for (const each of running.splice(0)) await each.stop(0);
      }),
      { numRuns: 25 },
    );
  });
});
