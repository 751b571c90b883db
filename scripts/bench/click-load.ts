// Clicks as redirect processes send them, made from a seed: the same numbers give the same clicks.
import { CLICK_BATCH_LIMIT, type Click } from "@linkfence/contracts";

export type Spread = "zipf" | "uniform" | "one";

export type ClickLoad = {
  clicks: number;
  /** Different codes. */
  codes: number;
  /** How the clicks lie among the codes: as visits do (the n-th code gets 1/n of the first), evenly, or all on one. */
  spread: Spread;
};

/** Clicks come over this time, the last of them now: roll-ups of several hours are written. */
const HOURS = 6;
const HOUR_MS = 3_600_000;
const OWNERS = 1000;
/** One click in so many says that it is a prefetch. */
const PREFETCH_EVERY = 50;
const REFERRERS = 60;
/** Half of the visitors come from nowhere, as far as their browsers say. */
const NO_REFERRER = 0.5;
const COUNTRIES = "DE US GB FR NL AT CH PL IT ES SE NO DK FI CZ BE PT IE JP IN".split(" ");
const AGENTS = [
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
  "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36",
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
  "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
  "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
];

/** A small generator of numbers in [0, 1), good enough to spread clicks (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Picks 0 to n - 1 by Zipf's law with exponent 1. */
export function createZipf(n: number, random: () => number): () => number {
  const sums = new Float64Array(n);
  let sum = 0;
  for (let rank = 0; rank < n; rank += 1) {
    sum += 1 / (rank + 1);
    sums[rank] = sum;
  }
  return () => {
    const wanted = random() * sum;
    let [low, high] = [0, n - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** Makes the bodies of batches, one after the other, until all clicks are sent. */
export function* makeBodies(load: ClickLoad, seed: number, now: number): Generator<string> {
  for (const clicks of makeBatches(load, seed, now)) yield JSON.stringify({ sender: "bench", clicks });
}

/** Makes clicks, as many at a time as one body has. Times rise, as they do in a day. */
export function* makeBatches({ clicks, codes, spread }: ClickLoad, seed: number, now: number): Generator<Click[]> {
  const random = createRandom(seed);
  const zipf = createZipf(codes, random);
  const pickReferrer = createZipf(REFERRERS, random);
  const pickCountry = createZipf(COUNTRIES.length, random);
  const pickAgent = createZipf(AGENTS.length, random);
  const pickCode = { zipf, uniform: () => Math.floor(random() * codes), one: () => 0 }[spread];
  const step = (HOURS * HOUR_MS) / clicks;
  const hex = (length: number) =>
    Math.floor(random() * 16 ** length)
      .toString(16)
      .padStart(length, "0");
  for (let n = 0; n < clicks; ) {
    const batch: Click[] = [];
    for (; batch.length < CLICK_BATCH_LIMIT && n < clicks; n += 1) {
      const code = pickCode();
      const at = Math.floor(now - HOURS * HOUR_MS + n * step);
      const time = at.toString(16).padStart(12, "0");
      batch.push({
        id: `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`,
        // Scattered, as codes are: those that are clicked most do not lie side by side.
        code: ((code * 48_271) % 2_147_483_647).toString(36).padStart(7, "0"),
        version: 1,
        at,
        referrerHost: random() < NO_REFERRER ? null : `www.site-${pickReferrer()}.example`,
        userAgent: AGENTS[pickAgent()] ?? "",
        prefetch: n % PREFETCH_EVERY === 0,
        country: COUNTRIES[pickCountry()] ?? "DE",
        owner: `owner-${code % OWNERS}`,
      });
    }
    yield batch;
  }
}
