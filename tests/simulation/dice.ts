// Chance, all of it from one seed.

/** Looked up once: among Jest's globals each look is dear, and chance is asked a thousand times for each schedule. */
const { floor, imul, log } = Math;

export type Dice = ReturnType<typeof createDice>;

/** Creates it. The same seed throws the same. */
export function createDice(seed: number) {
  let state = mix((seed ^ 0x5bd1e995) >>> 0);

  /** At least 0, less than 1. Splitmix32: a counter whose bits are mixed, which is all that drawing faults takes. */
  function next(): number {
    state = (state + 0x9e3779b9) | 0;
    return (mix(state) >>> 0) / 2 ** 32;
  }

  return {
    next,
    chance: (part: number) => next() < part,
    between: (low: number, high: number) => low + (high - low) * next(),
    /** A whole number from `low` to `high`, both included. */
    whole: (low: number, high: number) => low + floor(next() * (high - low + 1)),
    pick<T>(of: readonly T[]): T {
      return of[floor(next() * of.length)] as T;
    },
    /** Mostly short, now and then several times as long as the mean. */
    delay: (mean: number) => -log(1 - next()) * mean,
  };
}

function mix(bits: number): number {
  let mixed = bits ^ (bits >>> 16);
  mixed = imul(mixed, 0x21f0aaad);
  mixed ^= mixed >>> 15;
  mixed = imul(mixed, 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}
