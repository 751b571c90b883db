// One stream, with a reader that takes what it is given when the test says so.
import { Writable } from "node:stream";
import { expect, test } from "@jest/globals";
import { createCounts } from "../counts.ts";
import { openLiveStream } from "./live-stream.ts";

const turn = () => new Promise(setImmediate);

function setUp(over: { drainMs?: number } = {}) {
  let take: (() => void) | undefined;
  let text = "";
  let line = "0";
  const reader = new Writable({
    highWaterMark: 1,
    write(chunk, _encoding, done) {
      text += chunk;
      take = done;
    },
  });
  const counts = createCounts().live;
  const stream = openLiveStream(reader, {
    author: { owner: "ann", keyId: "k" },
    first: "first",
    read: async () => line,
    heartbeatMs: 60_000,
    drainMs: 60_000,
    retryMs: 1,
    counts,
    onEnd: () => {},
    ...over,
  });
  return {
    stream,
    counts,
    reader,
    say: (next: string) => {
      line = next;
    },
    /** The reader takes what waits, once. */
    take() {
      const done = take;
      take = undefined;
      done?.();
    },
    told: () => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data),
  };
}

test("a reader that takes nothing has one event waiting, whatever happens meanwhile, and then gets the newest", async () => {
  const { stream, say, take, told, reader } = setUp();
  take();
  await turn();
  for (const line of ["1", "2", "3"]) {
    say(line);
    stream.advance();
    await turn();
  }
  const waiting = reader.writableLength;
  expect(waiting).toBeLessThan(100);
  while (told().at(-1) !== "3") {
    take();
    stream.advance();
    await turn();
  }
  expect(told().length).toBeLessThanOrEqual(3);
  stream.end("stopped");
});

test("a reader that takes nothing in its time is cut off", async () => {
  const { stream, say, counts, reader } = setUp({ drainMs: 1 });
  say("1");
  stream.advance();
  while (counts.ended.slow === 0) await turn();
  expect(reader.destroyed).toBe(true);
});

test("counts that are what they were are not told again", async () => {
  const { stream, say, take, counts } = setUp();
  take();
  await turn();
  take();
  say("first");
  for (let n = 0; n < 3; n += 1) {
    stream.advance();
    await turn();
  }
  expect(counts.events).toBe(1);
  stream.end("stopped");
});
