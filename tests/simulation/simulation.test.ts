// Acknowledged revocation in some ten thousand schedules of failures, and what becomes of it without each of its rules.
import { randomInt } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type Found, runSchedules, tellSchedule } from "./run.ts";
import { PRODUCT, TWINS } from "./twins.ts";

/** Fresh ones each time: where nothing is wrong, more is learnt from new schedules than from old ones. */
const FRESH = 20_000;
/** Where a rule is missing, one of so many schedules has to show it. Always the same ones, so that they always do. */
const TWIN_SEEDS = { from: 1, count: 20_000 };
/** On a machine that is busy elsewhere, several times what it takes here. */
const TIMEOUT_MS = 300_000;

const again = ({ seed, violations }: Found) => `pnpm simulate --seeds 1 --from ${seed} --history # ${violations[0]}`;

describe("a schedule", () => {
  test("is decided by its seed, to the letter", async () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const [one, other] = [await tellSchedule(seed, PRODUCT), await tellSchedule(seed, PRODUCT)];
      expect(one.history.length).toBeGreaterThan(10);
      expect(one).toEqual(other);
    }
  });

  test("goes among many others as it goes alone", async () => {
    const twin = TWINS.find(({ name }) => name === "early-ack") ?? PRODUCT;
    const { found } = await runSchedules({ from: 1, count: 300, twin, enough: 300 });
    expect(found.length).toBeGreaterThan(10);
    for (const { seed, violations } of found) expect((await tellSchedule(seed, twin)).violations).toEqual(violations);
  });
});

describe("the product", () => {
  test(
    `answers with no old target after a confirmation, in ${FRESH} schedules`,
    async () => {
      const from = randomInt(2 ** 31);
      const { found, schedules, tally } = await runSchedules({ from, count: FRESH, twin: PRODUCT });
      expect(found.map(again)).toEqual([]);
      expect(schedules).toBe(FRESH);
      // What was to be tried has been tried.
      const tried = ["confirmed by acknowledged", "confirmed by ttl", "epoch settled", "rows removed", "flush trimmed"];
      const rare = [
        "flush registration-lost",
        "flush epoch-changed",
        "answer 503",
        "fault sleep-redirect",
        "fault crash",
      ];
      for (const what of [...tried, ...rare]) expect([what, (tally.get(what) ?? 0) > 10]).toEqual([what, true]);
    },
    TIMEOUT_MS,
  );
});

describe("without its rule, where", () => {
  test.each(TWINS)(
    "$change, an old target is answered after a confirmation",
    async (twin) => {
      const { found } = await runSchedules({ ...TWIN_SEEDS, twin });
      expect(found[0]?.violations[0]).toMatch(/ answered a request for \w+ of [\d.]+ with the old target: /);
    },
    TIMEOUT_MS,
  );
});
