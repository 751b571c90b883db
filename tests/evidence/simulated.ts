// Histories of failures that no machine would live through in a year, on the product's own parts, with a seed for everything.
import { runSchedules } from "../simulation/run.ts";
import { PRODUCT, TWINS } from "../simulation/twins.ts";
import type { EvidenceCase } from "./report.ts";

/** Some seconds; the tests run ten times as many, and `pnpm simulate` any number. */
const SCHEDULES = 2000;
const SEEDS = 2 ** 31;

export const q8: EvidenceCase = {
  id: "Q8",
  shows:
    "in two thousand simulated histories of failures, new ones each time, no request that starts after a confirmation gets the old target, and no confirmation comes late",
  async run(report) {
    const from = Date.now() % SEEDS;
    const { schedules, steps, found, tally } = await runSchedules({ from, count: SCHEDULES, twin: PRODUCT });
    report.note(`seeds from ${from} on`);
    report.check("schedules", schedules, SCHEDULES);
    report.check("what was found", found, []);
    const confirmed = ["acknowledged", "ttl"].map((by) => tally.get(`confirmed by ${by}`) ?? 0);
    report.check("revocations were confirmed either way", Math.min(...confirmed) > 0, true);
    report.figure(
      `${steps} steps; confirmed by acknowledgements ${confirmed[0]} times, by time ${confirmed[1]} times, ${tally.get("answer 302")} redirects`,
    );
  },
};

export const q8c: EvidenceCase = {
  id: "Q8c",
  shows:
    "without any one of its rules, each taken out of the product by itself, old targets are answered after a confirmation",
  control: true,
  async run(report) {
    for (const twin of TWINS) {
      const { found } = await runSchedules({ from: twin.shownBy, count: 1, twin });
      const old = found.some(({ violations }) =>
        violations.some((violation) => violation.includes("with the old target")),
      );
      report.check(`where ${twin.change}`, old, true);
    }
  },
};
