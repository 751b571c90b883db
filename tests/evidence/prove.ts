import { expect, test } from "@jest/globals";
import { CASE_TIMEOUT_MS, type EvidenceCase, runCase } from "./report.ts";

/** Makes each case a test. One that lacks a program is skipped, and its name says what to install. */
export async function prove(cases: readonly EvidenceCase[]): Promise<void> {
  for (const evidence of cases) {
    const missing = (await evidence.missing?.()) ?? null;
    const run = missing === null ? test : test.skip;
    const reason = missing === null ? "" : ` (skipped: ${missing})`;
    run(`${evidence.id}: ${evidence.shows}${reason}`, () => hold(evidence), CASE_TIMEOUT_MS + 30_000);
  }
}

async function hold(evidence: EvidenceCase): Promise<void> {
  const { lines, passed } = await runCase(evidence, { file: null }, () => {});
  expect(lines.filter(({ kind }) => kind === "FAIL")).toEqual([]);
  expect(passed).toBeGreaterThan(0);
}
