// What reading costs where a file is full of what looks like the beginnings of frames.
import { expect, jest, test } from "@jest/globals";
import * as real from "./crc32c.ts";

let summed = 0;
jest.unstable_mockModule("./crc32c.ts", () => ({
  crc32c: (bytes: Uint8Array, start: number, end: number) => {
    summed += end - start;
    return real.crc32c(bytes, start, end);
  },
}));
const { encodeFrames, FRAME_HEAD, PAYLOAD_MAX, readFrames } = await import("./frame.ts");

const SIZE = 256 * 1024;
/** A length of so many bytes, again and again, with something between. */
const lengths = (length: number, every: number) =>
  Buffer.alloc(SIZE, Buffer.concat([Buffer.from([length & 255, length >> 8, 0, 0]), Buffer.alloc(every - 4, "x")]));

test.each([
  ["the longest length in every four bytes", lengths(PAYLOAD_MAX, 4)],
  ["the longest length in every twelve bytes", lengths(PAYLOAD_MAX, 12)],
  ["lengths that end where the next one begins", lengths(100 - FRAME_HEAD, 100)],
  ["no NUL byte at all", Buffer.alloc(SIZE, "x")],
  ["nothing but NUL bytes", Buffer.alloc(SIZE)],
])("%s: each byte is summed a few times at the most, and the frame behind it is found", (_what, garbage) => {
  summed = 0;
  const { payloads, used } = readFrames(Buffer.concat([garbage, encodeFrames(["{}"])]), { last: true });
  expect(payloads.map(String)).toEqual(["{}"]);
  expect(used).toBe(SIZE + FRAME_HEAD + 2);
  expect(summed).toBeLessThan(4 * SIZE);
});

test("control: whoever sums whatever a length promises goes through such a file a thousand times", () => {
  const garbage = lengths(PAYLOAD_MAX, 4);
  let believed = 0;
  for (let at = 0; at + FRAME_HEAD < SIZE; at += 1) {
    const length = garbage.readUInt32LE(at);
    if (length >= 2 && length <= PAYLOAD_MAX) believed += Math.min(length, SIZE - at);
  }
  expect(believed).toBeGreaterThan(1000 * SIZE);
});
