import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { crc32c } from "./crc32c.ts";
import { encodeFrames, FRAME_HEAD, PAYLOAD_MAX, readFrames, splitFrames } from "./frame.ts";

/** What a click's JSON can be, and some that it never is. */
const payload = fc.oneof(
  fc
    .record({ id: fc.uuid(), userAgent: fc.string({ unit: "binary", maxLength: 40 }) })
    .map((click) => JSON.stringify(click)),
  fc.constantFrom("{}", JSON.stringify({ userAgent: "\0\0\0\0" }), JSON.stringify({ userAgent: "\u00ff".repeat(90) })),
);
const group = fc.array(payload, { minLength: 1, maxLength: 6 });
const texts = (payloads: readonly Buffer[]) => payloads.map((each) => each.toString("utf8"));
const readAll = (bytes: Buffer) => readFrames(bytes, { last: true });

/** How many bytes each of the first n frames takes, added up. */
function ends(payloads: readonly string[]): number[] {
  return payloads.map((_, index) => encodeFrames(payloads.slice(0, index + 1)).length);
}

describe("CRC32C", () => {
  test.each([
    // RFC 3720 appendix B.4, and the check value that everybody gives.
    ["32 zeros", Buffer.alloc(32), 0x8a9136aa],
    ["32 ones", Buffer.alloc(32, 0xff), 0x62a8ab43],
    ["32 rising bytes", Buffer.from(Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e],
    ["digits", Buffer.from("123456789"), 0xe3069283],
    ["nothing", Buffer.alloc(0), 0],
  ])("of %s", (_what, bytes, sum) => {
    expect(crc32c(bytes, 0, bytes.length)).toBe(sum);
  });

  test("looks at its part of the bytes alone, wherever that lies", () => {
    const bytes = fc.uint8Array({ maxLength: 64 });
    fc.assert(
      fc.property(bytes, bytes, bytes, (before, part, after) => {
        const all = Buffer.concat([before, part, after]);
        expect(crc32c(all, before.length, before.length + part.length)).toBe(crc32c(part, 0, part.length));
      }),
    );
  });
});

describe("frames", () => {
  test("give back what was put in, checked or not", () => {
    fc.assert(
      fc.property(group, (payloads) => {
        const bytes = encodeFrames(payloads);
        expect(texts(splitFrames(bytes))).toEqual(payloads);
        const { payloads: read, used, damaged } = readAll(bytes);
        expect([texts(read), used, damaged]).toEqual([payloads, bytes.length, 0]);
      }),
    );
  });

  test("cut off at every byte give back those that are whole, and tell of a torn one", () => {
    fc.assert(
      fc.property(group, (payloads) => {
        const bytes = encodeFrames(payloads);
        const whole = ends(payloads);
        for (let cut = 0; cut <= bytes.length; cut += 1) {
          const { payloads: read, used, damaged } = readAll(bytes.subarray(0, cut));
          const count = whole.filter((end) => end <= cut).length;
          const isTorn = cut > 0 && !whole.includes(cut);
          expect([texts(read), used, damaged]).toEqual([payloads.slice(0, count), cut, isTorn ? 1 : 0]);
        }
      }),
      { numRuns: 12 },
    );
  });

  test("with any one bit turned over lose one click, and tell of it", () => {
    fc.assert(
      fc.property(group, (payloads) => {
        const bytes = encodeFrames(payloads);
        const whole = ends(payloads);
        for (let bit = 0; bit < bytes.length * 8; bit += 1) {
          const hit = Buffer.from(bytes);
          hit[bit >> 3] = (hit[bit >> 3] as number) ^ (1 << (bit & 7));
          const lost = whole.findIndex((end) => bit >> 3 < end);
          const { payloads: read, used, damaged } = readAll(hit);
          expect([texts(read), used, damaged]).toEqual([payloads.toSpliced(lost, 1), bytes.length, 1]);
        }
      }),
      { numRuns: 5 },
    );
  });

  test("read part by part are the same as read at once, damage between them included", () => {
    const part = fc.oneof(
      group.map(encodeFrames),
      fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes.map((byte) => byte | 1))),
      fc.constant(Buffer.alloc(100)),
    );
    const size = fc.integer({ min: PAYLOAD_MAX + FRAME_HEAD, max: 2 * PAYLOAD_MAX });
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 40, maxLength: 80 }),
        size,
        fc.integer({ min: 1, max: 99 }),
        (parts, length, limit) => {
          const bytes = Buffer.concat(parts);
          const read: Buffer[] = [];
          for (let at = 0; at < bytes.length; ) {
            const some = readFrames(bytes.subarray(at, at + length), { last: at + length >= bytes.length, limit });
            expect(some.used).toBeGreaterThan(0);
            read.push(...some.payloads);
            at += some.used;
          }
          expect(texts(read)).toEqual(texts(readAll(bytes).payloads));
        },
      ),
      { numRuns: 10 },
    );
  });

  test("are never found in what is none, and no bytes make reading fail", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, last) => {
        const { payloads, used } = readFrames(Buffer.from(bytes), { last });
        expect(payloads).toEqual([]);
        expect(used).toBeLessThanOrEqual(bytes.length);
      }),
    );
  });

  test("cannot be hidden in what a visitor sends", () => {
    const forged = encodeFrames(['{"id":"forged"}']).toString("latin1");
    const bytes = encodeFrames([JSON.stringify({ userAgent: forged }), "{}"]);
    bytes[FRAME_HEAD] = 0;
    expect(texts(readAll(bytes).payloads)).toEqual(["{}"]);
  });

  test("take no payload that could not be read again", () => {
    expect(() => encodeFrames(["x"])).toThrow(RangeError);
    expect(() => encodeFrames(["x".repeat(PAYLOAD_MAX + 1)])).toThrow(RangeError);
  });
});
