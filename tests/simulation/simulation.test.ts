// Acknowledged revocation in some ten thousand schedules of failures, and what becomes of it without each of its rules.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { type Found, runSchedules, tellSchedule } from "./run.ts";
import { COUNTING_DATABASE, PRODUCT, TWINS, type Twin } from "./twins.ts";

/** Where a rule is missing, one of so many schedules has to show it. Always the same ones, so that they always do. */
const TWIN_SEEDS = 20_000;
/** On a machine that is busy elsewhere, several times what it takes here. */
const TIMEOUT_MS = 300_000;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Runs the command, in a process of its own: Jest follows every promise of its processes, which takes half of the time. */
async function simulate(...args: string[]): Promise<{ code: number; stdout: string }> {
  const node = ["--conditions=source", "--import", "tsx", "scripts/simulate.ts", ...args];
  const running = promisify(execFile)(process.execPath, node, { cwd: ROOT });
  return running.then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }) => ({ code, stdout }),
  );
}

async function firstFound(twin: Twin): Promise<Found | undefined> {
  const tried = await runSchedules({ from: twin.shownBy, count: 1, twin });
  return tried.found[0] ?? (await runSchedules({ from: 1, count: TWIN_SEEDS, twin })).found[0];
}

describe("a schedule", () => {
  test("is decided by its seed, to the letter", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const [one, other] = [await tellSchedule(seed, PRODUCT), await tellSchedule(seed, PRODUCT)];
      expect(one.history.length).toBeGreaterThan(10);
      expect(one).toEqual(other);
    }
  });

  test("goes among many others as it goes alone, where each promise goes on before anything else happens", async () => {
    const twin = TWINS.find(({ name }) => name === "early-ack") ?? PRODUCT;
    const { found } = await runSchedules({ from: 1, count: 200, twin, enough: 200 });
    expect(found.length).toBeGreaterThan(10);
    for (const { seed, violations } of found) expect((await tellSchedule(seed, twin)).violations).toEqual(violations);
  });
});

describe("the product", () => {
  test(
    "answers with no old target after a confirmation, in 20,000 fresh schedules",
    async () => {
      const { code, stdout } = await simulate("--seeds", "20000");
      // The first line tells the seed, and each failure how to see it again.
      expect([code, stdout]).toEqual([0, expect.stringContaining("\n20000 schedules, 0 failed, ")]);
      const often = new Map([...stdout.matchAll(/^ *(\d+) (\D.*)$/gm)].map(([, times, what]) => [what, Number(times)]));
      // What was to be tried has been tried.
      const tried = ["confirmed by acknowledged", "confirmed by ttl", "epoch settled", "rows removed", "flush trimmed"];
      const rare = [
        "flush registration-lost",
        "flush epoch-changed",
        "answer 503",
        "fault sleep-redirect",
        "fault crash",
      ];
      expect([...tried, ...rare].filter((what) => (often.get(what) ?? 0) < 10)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test("takes no renewal for an earlier one, though a crash of the server loses some, and without that rule does", async () => {
    const [from, count] = [COUNTING_DATABASE.shownBy, 1];
    expect((await runSchedules({ from, count, twin: PRODUCT })).found).toEqual([]);
    const { found } = await runSchedules({ from, count, twin: COUNTING_DATABASE });
    expect(found.flatMap(({ violations }) => violations)).toEqual([expect.stringContaining("with the old target")]);
  });
});

describe("without its rule, where", () => {
  test.each(TWINS)(
    "$change, an old target is answered after a confirmation",
    async (twin) => {
      const found = await firstFound(twin);
      expect(found?.violations[0]).toMatch(/ answered a request for \w+ of [\d.]+ with the old target: /);
    },
    TIMEOUT_MS,
  );
});

describe("the command", () => {
  test("tells the history of a seed, and its violations, by its exit status, too", async () => {
    const twin = TWINS.find(({ name }) => name === "timer-fence") ?? PRODUCT;
    const seed = (await firstFound(twin))?.seed ?? 0;
    const { code, stdout } = await simulate("--twin", twin.name, "--seed", String(seed), "--history");
    expect([code, stdout]).toEqual([1, expect.stringContaining("with the old target")]);
    expect((await simulate("--twin", "nobody")).code).toBe(64);
  });
});
