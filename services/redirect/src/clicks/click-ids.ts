// Ids of clicks: UUIDv7, as texts. A click costs no call of the random generator, which takes longer than all else that is
// done to it: its bytes are drawn for many ids at once.
import { Buffer } from "node:buffer";

/** Random bytes of an id: 2 bits beside the counter, and the last 40. */
const RANDOM_BYTES = 6;
/** So many ids are made of what is drawn at once; a draw of 6 KiB takes some ten microseconds. */
const DRAWN_IDS = 1024;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Creates the function that makes ids: UUIDv7 (RFC 9562 section 5.7) of a time in whole ms since 1970, with a counter of 32 bits
 * behind it (section 6.2, method 1), so that those of one process sort in the order in which they were made while time does not
 * go back. The counter begins at random, and what is left, 42 bits, is random for each.
 * @param fill fills the bytes with random ones
 */
export function createClickIds(fill: (bytes: Uint8Array) => void): (at: number) => string {
  const drawn = Buffer.alloc(RANDOM_BYTES * DRAWN_IDS);
  let used = drawn.length;
  let time = Number.NaN;
  let prefix = "";

  function draw(): number {
    if (used === drawn.length) {
      fill(drawn);
      used = 0;
    }
    used += RANDOM_BYTES;
    return used - RANDOM_BYTES;
  }

  const hex = (at: number) => HEX[drawn[at] as number];
  // The highest bit is left unset, so that a counter never begins near its end.
  let counter = drawn.readUInt32LE(draw()) >>> 1;

  return (at) => {
    if (at !== time) {
      time = at;
      const text = at.toString(16).padStart(12, "0");
      prefix = `${text.slice(0, 8)}-${text.slice(8)}-7`;
    }
    counter = (counter + 1) >>> 0;
    const random = draw();
    const high = (counter >>> 20).toString(16).padStart(3, "0");
    const middle = HEX[0x80 | ((counter >>> 14) & 0x3f)] ?? "";
    const low = HEX[(counter >>> 6) & 0xff] ?? "";
    const last = HEX[((counter & 0x3f) << 2) | ((drawn[random] as number) & 3)] ?? "";
    const rest = `${hex(random + 1)}${hex(random + 2)}${hex(random + 3)}${hex(random + 4)}${hex(random + 5)}`;
    return `${prefix}${high}-${middle}${low}-${last}${rest}`;
  };
}
