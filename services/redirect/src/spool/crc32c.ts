/** CRC32C (Castagnoli; RFC 3720 appendix B.4), least significant bit first. */
const POLYNOMIAL = 0x82f63b78;

/** `tables[n][byte]` is what a byte does to the sum when n more bytes follow it: four of them are taken in one step. */
const tables = makeTables();
const [T0, T1, T2, T3] = tables;

function makeTables(): [Int32Array, Int32Array, Int32Array, Int32Array] {
  const first = Int32Array.from({ length: 256 }, (_, byte) => {
    let sum = byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1;
    return sum;
  });
  const behind = (table: Int32Array) => table.map((sum) => (first[sum & 255] as number) ^ (sum >>> 8));
  const second = behind(first);
  const third = behind(second);
  return [first, second, third, behind(third)];
}

/** The sum of `bytes` from `start` to before `end`, as an unsigned number of 32 bits. */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  let sum = -1;
  let at = start;
  for (const four = end - 3; at < four; at += 4) {
    sum ^=
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    sum =
      (T3[sum & 255] as number) ^
      (T2[(sum >>> 8) & 255] as number) ^
      (T1[(sum >>> 16) & 255] as number) ^
      (T0[sum >>> 24] as number);
  }
  for (; at < end; at += 1) sum = (T0[(sum ^ (bytes[at] as number)) & 255] as number) ^ (sum >>> 8);
  return ~sum >>> 0;
}
