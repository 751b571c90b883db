import { expect, test } from "@jest/globals";
import { catalogue } from "./catalogue.ts";
import { runCase } from "./report.ts";

test.each(catalogue.map((evidence) => [evidence.id, evidence] as const))("evidence %s holds", async (_id, evidence) => {
  const { lines, passed } = await runCase(evidence, { file: null }, () => {});
  expect(lines.filter(({ kind }) => kind === "FAIL")).toEqual([]);
  expect(passed).toBeGreaterThan(0);
});
