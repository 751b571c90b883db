import { afterEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import fc from "fast-check";
import { makeClick } from "../domain/click.ts";
import { makeEntry } from "../domain/entry.ts";
import { createClickRing } from "./click-ring.ts";
import { type ClickSender, createClickSender, type SendResult } from "./click-sender.ts";

const row = { target: "https://example.com/", state: "ACTIVE", version: 3, remainingMs: null } as const;
const entry = makeEntry("abc", row, { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 });
const push = (ring: ReturnType<typeof createClickRing>, at: number) => ring.push(entry, at, undefined, undefined);

describe("the ring", () => {
  test("keeps clicks in order over any number of turns, and drops exactly what does not fit", () => {
    const moves = fc.array(fc.oneof(fc.constant("push" as const), fc.integer({ min: 1, max: 5 })), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), moves, (capacity, list) => {
        const ring = createClickRing(capacity);
        const model: number[] = [];
        let dropped = 0;
        let at = 0;
        for (const move of list) {
          if (move !== "push") {
            expect(ring.take(move).map((facts) => facts.at)).toEqual(model.splice(0, move));
            continue;
          }
          at += 1;
          push(ring, at);
          if (model.length < capacity) model.push(at);
          else dropped += 1;
        }
        expect(ring.stats()).toEqual({ accepted: at, droppedFull: dropped, waiting: model.length });
      }),
    );
  });

  test("keeps a bounded part of what the visitor sent", () => {
    const ring = createClickRing(4);
    ring.push(entry, 1, `https://ref.example/${"a".repeat(8000)}`, "u".repeat(8000));
    const [facts] = ring.take(1);
    expect([facts?.referrer?.length, facts?.userAgent?.length]).toEqual([1024, 512]);
    expect(facts && makeClick("id", facts)).toMatchObject({ code: "abc", version: 3, referrerHost: "ref.example" });
  });
});

test.each([
  ["https://user:pw@Ref.example:8080/path?secret=1", "ref.example"],
  ["https://bücher.example/", "xn--bcher-kva.example"],
  ["not a url", null],
  ["data:text/html,x", null],
  ["", null],
])("of the referrer %p the host alone is kept: %p", (referrer, host) => {
  const facts = { code: "abc", version: 1, at: 1, referrer, userAgent: undefined };
  expect(makeClick("id", facts)).toEqual({
    id: "id",
    code: "abc",
    version: 1,
    at: 1,
    referrerHost: host,
    userAgent: null,
  });
});

describe("the sender", () => {
  let sender: ClickSender | undefined;
  afterEach(() => sender?.stop(0));

  function start(
    ring: ReturnType<typeof createClickRing>,
    answer: (clicks: readonly Click[], attempt: number) => SendResult,
  ) {
    const sent: (readonly Click[])[] = [];
    const troubles: (string | null)[] = [];
    let ids = 0;
    let wanted = 0;
    let reached = () => {};
    sender = createClickSender({
      ring,
      send: async (clicks) => {
        sent.push(clicks);
        const result = answer(clicks, sent.length);
        if (sent.length >= wanted) setImmediate(reached);
        return result;
      },
      newClickId: (at) => `${at}-${++ids}`,
      random: () => 0.99,
      onTrouble: (reason) => troubles.push(reason),
    });
    const attempts = (count: number) =>
      new Promise<void>((resolve) => {
        wanted = count;
        reached = resolve;
        if (sent.length >= count) setImmediate(resolve);
      });
    return { running: sender, sent, troubles, attempts };
  }

  const stored = (inserted: number, duplicate = 0): SendResult => ({
    kind: "stored",
    result: { received: inserted + duplicate, inserted, duplicate, refused: 0 },
  });
  const sum = (ledger: ReturnType<ClickSender["ledger"]>) => {
    const dropped = Object.values(ledger.dropped).reduce((total, count) => total + count, 0);
    return ledger.inserted + ledger.duplicate + ledger.refused + dropped + ledger.inFlight;
  };

  test("keeps a batch until it is stored, and sends it again with the same ids", async () => {
    const ring = createClickRing(100);
    for (let at = 1; at <= 3; at += 1) push(ring, at);
    const { running, sent, troubles, attempts } = start(ring, (clicks, attempt) =>
      attempt < 3 ? { kind: "failed", reason: "away" } : stored(0, clicks.length),
    );
    await attempts(3);
    expect(sent.map((batch) => batch.map(({ id }) => id))).toEqual(Array(3).fill(["1-1", "2-2", "3-3"]));
    expect(running.ledger()).toMatchObject({ accepted: 3, inserted: 0, duplicate: 3, inFlight: 0 });
    expect(troubles).toEqual(["away", null]);
  });

  test("drops and counts a batch that the ingest will never take, and goes on", async () => {
    const ring = createClickRing(1000);
    for (let at = 0; at < 600; at += 1) push(ring, at);
    const { running, attempts } = start(ring, (clicks, attempt) =>
      attempt === 1 ? { kind: "refused", reason: "the ingest answered 400" } : stored(clicks.length),
    );
    await attempts(2);
    expect(running.ledger()).toMatchObject({ inserted: 100, dropped: { "batch-refused": 500 }, inFlight: 0 });
  });

  test("at a stop sends what is left", async () => {
    const ring = createClickRing(2000);
    const { running } = start(ring, (clicks) => stored(clicks.length));
    for (let at = 0; at < 1500; at += 1) push(ring, at);
    await running.stop(10_000);
    expect(running.ledger()).toMatchObject({ accepted: 1500, inserted: 1500, inFlight: 0 });
  });

  test("at a stop counts what could not be sent in time", async () => {
    const ring = createClickRing(2000);
    const { running } = start(ring, () => ({ kind: "failed", reason: "away" }));
    for (let at = 0; at < 1500; at += 1) push(ring, at);
    await running.stop(20);
    expect(running.ledger()).toMatchObject({ accepted: 1500, dropped: { stopped: 1500 }, inFlight: 0 });
  });

  test("accounts for every click at every moment, whatever the ingest answers", async () => {
    const answers = fc.array(fc.constantFrom("stored", "failed", "refused"), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 0, max: 20 }), async (list, count) => {
        const ring = createClickRing(8);
        const { running, attempts } = start(ring, (clicks, attempt) => {
          expect(sum(running.ledger())).toBe(running.ledger().accepted);
          const answer = list[(attempt - 1) % list.length];
          return answer === "stored"
            ? stored(clicks.length)
            : { kind: answer === "failed" ? "failed" : "refused", reason: "x" };
        });
        for (let at = 0; at < count; at += 1) push(ring, at);
        expect(sum(running.ledger())).toBe(count);
        if (count > 0) await attempts(1);
        await running.stop(0);
        expect(sum(running.ledger())).toBe(count);
        expect(running.ledger().inFlight).toBe(0);
      }),
      { numRuns: 20 },
    );
  });
});
