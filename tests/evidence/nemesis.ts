// A short run of the nemesis, with one seed; `pnpm nemesis` has runs of any length. See tests/nemesis.
import { CONTROLS } from "../nemesis/controls.ts";
import type { Fault } from "../nemesis/faults.ts";
import { runNemesis, type Seen } from "../nemesis/run.ts";
import { spreadOf, tellFault } from "../nemesis/summary.ts";
import type { EvidenceCase, Report } from "./report.ts";

/** As short as a machine that is busy with other tests allows, since faults last as long as it says. */
const SETTINGS = { ttlMs: 1000, writes: 1, rate: 40 };
/** Of this seed the first faults are of many sorts: processes, lines and the database. */
const SEED = 4;
const ROUNDS = 6;
/** A run ends with its rounds, a control with its first violation, after a few of them; this only ends a broken one. */
const MOST_MS = 60_000;
/** Only those that a redirect process does not notice by itself at once, so that a control takes as little time as may be. */
const SILENT = new Set(["black hole", "answers lost", "stopped for less than the TTL"]);
const isSilent = ({ redirect, kind }: Fault) => redirect !== null && SILENT.has(kind);

const countFaults = ({ faults }: Seen) => [...faults.values()].reduce((sum, count) => sum + count, 0);

export const q7: EvidenceCase = {
  id: "Q7",
  shows:
    "while processes are stopped, killed and restarted, lines cut and slowed, and the database is restarted and killed, no request sent after a confirmation gets the old target, and everything is confirmed in the end",
  async run(report) {
    const onFault = (fault: Fault, atMs: number) => report.note(tellFault(fault, atMs));
    const seen = await runNemesis({ ...SETTINGS, seed: SEED, redirects: 3, rounds: ROUNDS, ms: MOST_MS, onFault });
    const { acknowledged, ttl } = seen.confirmed;
    report.check("violations", seen.violations, []);
    report.check("things that failed", seen.failed, 0);
    report.check("links that were revoked and are confirmed", acknowledged + ttl, seen.revocations);
    report.check(
      "some were, and some links were asked for",
      acknowledged > 0 && (seen.statuses.get(302) ?? 0) > 0,
      true,
    );
    report.figure(
      `${countFaults(seen)} faults, ${seen.revocations} revocations (${ttl} confirmed by time), ${spreadOf(seen.times)}`,
    );
  },
};

/** Takes a rule out until the checker has seen what comes of it. */
async function showCaught(report: Report, name: string): Promise<void> {
  const control = CONTROLS.find((each) => each.name === name);
  const chance = { seed: SEED, only: isSilent };
  const seen = await runNemesis({ ...SETTINGS, ...chance, redirects: 2, ms: MOST_MS, control, enough: 1 });
  const old = seen.violations.filter(({ rule }) => rule.startsWith("old target"));
  for (const { rule, what } of old.slice(0, 1)) report.note(`${rule}: ${what}`);
  report.check("old target after a confirmation, or after a 202 had promised otherwise", old.length > 0, true);
  report.figure(`caught after ${(seen.ms / 1000).toFixed(0)} s, ${countFaults(seen)} faults`);
}

export const q7c: EvidenceCase = {
  id: "Q7c",
  shows:
    "where rows of processes that are cut off or stopped are removed at once, the same run finds requests that got the old target after the confirmation",
  control: true,
  run: (report) => showCaught(report, "impatient-janitor"),
};

export const q7t: EvidenceCase = {
  id: "Q7t",
  shows: "where processes have a longer TTL than their rows say, it finds the same of confirmations by time",
  control: true,
  run: (report) => showCaught(report, "forged-ttl"),
};
