/** Hands out `count` bytes from a cryptographic source. */
export type RandomBytes = (count: number) => Uint8Array;

/**
 * Rounds after which the source must be broken. One round draws twice the bytes that are needed, of which at least
 * half are usable for any alphabet, so that two rounds are rare and a hundred do not happen.
 */
const MAX_ROUNDS = 100;

/**
 * Draws a text whose characters are equally likely and independent. A byte at or above the largest multiple of the
 * alphabet's size is thrown away instead of being folded back, which would favour the first characters.
 * @param alphabet 2 to 256 distinct characters
 * @param length characters wanted
 * @throws RangeError when the source keeps returning unusable bytes
 */
export function drawText(alphabet: string, length: number, randomBytes: RandomBytes): string {
  const limit = 256 - (256 % alphabet.length);
  let text = "";
  for (let round = 0; round < MAX_ROUNDS; round++) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < limit) text += alphabet.charAt(byte % alphabet.length);
      if (text.length === length) return text;
    }
  }
  throw new RangeError("the source of randomness returned no usable bytes");
}
