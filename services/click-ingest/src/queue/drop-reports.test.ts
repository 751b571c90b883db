import { expect, test } from "@jest/globals";
import type { DropReport } from "@linkfence/contracts";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { createDropReports } from "./drop-reports.ts";

const turn = () => new Promise(setImmediate);

function setUp(outcome: () => Promise<void> = async () => {}) {
  let now = 0;
  const noted: DropReport[] = [];
  const logger = createQuietLogger();
  const reports = createDropReports({
    note: (report) => {
      noted.push(report);
      return outcome();
    },
    logger,
    now: () => now,
  });
  return {
    reports,
    logger,
    noted,
    pass: (ms: number) => {
      now += ms;
    },
  };
}
const report = (incarnation: string, total: number): DropReport => ({
  incarnation,
  since: 0,
  totals: [{ reason: "ring-full", total }],
});

test("a report that says what the last one said is stored once an hour", async () => {
  const { reports, noted, pass } = setUp();
  for (const total of [1, 1, 1, 2, 2]) {
    reports.take(report("one", total));
    await turn();
  }
  expect(noted).toEqual([report("one", 1), report("one", 2)]);
  pass(3_600_000);
  reports.take(report("one", 2));
  await turn();
  expect(noted).toHaveLength(3);
});

test("a report that could not be stored is tried with the next batch, and told in the log", async () => {
  let fails = true;
  const { reports, noted, logger } = setUp(async () => {
    if (fails) throw new Error("away");
  });
  reports.take(report("one", 1));
  await turn();
  fails = false;
  reports.take(report("one", 1));
  await turn();
  expect(noted).toHaveLength(2);
  expect(logger.entries).toHaveLength(1);
  expect(reports.stats()).toEqual({ stored: 1, failed: 1 });
});

test("a database that hangs holds one report of a process, and eight in all", async () => {
  const { reports, noted } = setUp(() => new Promise(() => {}));
  for (let n = 0; n < 20; n += 1) {
    reports.take(report(`process-${n}`, 1));
    reports.take(report(`process-${n}`, 2));
  }
  await turn();
  expect(noted).toHaveLength(8);
});
