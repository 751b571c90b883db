// One stream, with a reader that takes what it is given when the test says so.
import { Writable } from "node:stream";
import { describe, expect, test } from "@jest/globals";
import type { LinkChange } from "@linkfence/contracts";
import fc from "fast-check";
import { createCounts } from "../counts.ts";
import type { ChangeRange } from "../store/changes.ts";
import { EVENTS_AT_ONCE, openChangeStream } from "./stream.ts";

/** The longest that a change can be. */
const change = (seq: number): LinkChange => ({
  seq,
  type: "revoked",
  code: "c".repeat(32),
  version: Number.MAX_SAFE_INTEGER,
  changedAt: "2026-01-31T12:00:00.000001Z",
  changedBy: "k".repeat(12),
});
const BIG = Number.MAX_SAFE_INTEGER - 100_000;

function setUp(over: { heartbeatMs?: number; drainMs?: number } = {}) {
  let take: (() => void) | undefined;
  let text = "";
  const reader = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      take = done;
    },
  });
  const counts = createCounts().changes;
  let most = 0;
  const stream = openChangeStream(reader, {
    author: { owner: "ann", keyId: "k" },
    position: BIG,
    async readRange({ after, until = 0, limit }: ChangeRange) {
      most = Math.max(most, reader.writableLength);
      return Array.from({ length: Math.min(limit, until - after) }, (_, n) => change(after + n + 1));
    },
    heartbeatMs: 60_000,
    drainMs: 60_000,
    retryMs: 1,
    counts,
    onEnd: () => {},
    ...over,
  });
  return {
    stream,
    reader,
    counts,
    /** The reader takes what waits, once. */
    take() {
      const done = take;
      take = undefined;
      done?.();
    },
    seqs: () => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? "").seq - BIG),
    text: () => text,
    most: () => Math.max(most, reader.writableLength),
  };
}
const turn = () => new Promise(setImmediate);

describe("a stream to a reader", () => {
  test("that takes nothing keeps one page in memory at the most, below 64 KiB, and ends it in time", async () => {
    const { stream, reader, counts, most } = setUp({ drainMs: 20, heartbeatMs: 1 });
    const closed = new Promise((resolve) => reader.once("close", resolve));
    stream.advance(BIG + 10 * EVENTS_AT_ONCE);
    await closed;
    expect(counts.ended.slow).toBe(1);
    expect(most()).toBeGreaterThan(EVENTS_AT_ONCE * 100);
    expect(most()).toBeLessThanOrEqual(64 * 1024);
  });

  test("brings everything once and in order, however it takes it and whenever the log moves on", async () => {
    const act = fc.oneof(
      fc.record({ what: fc.constant("advance" as const), by: fc.integer({ min: 0, max: 500 }) }),
      fc.record({ what: fc.constant("take" as const), by: fc.integer({ min: 1, max: 3 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const { stream, take, seqs, most, reader } = setUp();
        let head = 0;
        for (const { what, by } of acts) {
          if (what === "advance") {
            head += by;
            stream.advance(BIG + head);
          } else for (let n = 0; n < by; n += 1) take();
          await turn();
          expect(most()).toBeLessThanOrEqual(64 * 1024);
        }
        while (seqs().length < head || reader.writableLength > 0) {
          take();
          stream.advance(BIG + head);
          await turn();
        }
        expect(seqs()).toEqual(Array.from({ length: head }, (_, n) => n + 1));
        stream.end("stopped");
        take();
      }),
      { numRuns: 50 },
    );
  });

  test("that has not taken everything gets no heartbeats on top of it", async () => {
    const { stream, reader, counts, most } = setUp({ heartbeatMs: 1 });
    stream.advance(BIG + EVENTS_AT_ONCE);
    while (counts.events === 0) await turn();
    const waiting = reader.writableLength;
    const witness = setUp({ heartbeatMs: 1 });
    while (witness.text().split("\n:\n").length < 10) {
      witness.take();
      await turn();
    }
    expect(most()).toBe(waiting);
    for (const each of [{ stream, reader }, witness]) {
      each.stream.end("client");
      each.reader.destroy();
    }
  });

  test("that left is given nothing more, and counted once", async () => {
    const { stream, reader, counts, text } = setUp();
    reader.destroy();
    await turn();
    const before = text();
    stream.advance(BIG + 10);
    stream.end("stopped");
    await turn();
    expect(text()).toBe(before);
    expect(counts.ended).toEqual({ client: 1, slow: 0, key: 0, stopped: 0 });
  });
});
