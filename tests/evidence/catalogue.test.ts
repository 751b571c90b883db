import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { catalogue, groups } from "./catalogue.ts";
import { type EvidenceCase, runCase } from "./report.ts";

describe("the catalogue", () => {
  test("has no id twice", () => {
    const ids = catalogue.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(ids.length).toBeGreaterThan(0);
  });

  test.each(Object.keys(groups))("runs under the tests: group %s", (group) => {
    const files = readdirSync(import.meta.dirname).filter((file) => file.startsWith(`${group}.`));
    const test = files.find((file) => /\.(pg|e2e|failure)\.test\.ts$/.test(file));
    expect(test).toBeDefined();
    expect(readFileSync(`${import.meta.dirname}/${test}`, "utf8")).toContain(`await prove(groups`);
    expect(existsSync(`${import.meta.dirname}/${group}.ts`)).toBe(true);
  });
});

describe("a case", () => {
  const evidence = (run: EvidenceCase["run"], missing?: EvidenceCase["missing"]): EvidenceCase => ({
    id: "X",
    shows: "something",
    run,
    ...(missing ? { missing } : {}),
  });
  /** Runs a case, and keeps what it printed. */
  async function run(given: EvidenceCase) {
    const printed: string[] = [];
    const result = await runCase(given, { file: null }, (line) => void printed.push(line));
    return { printed, result };
  }

  test("prints each line, and counts what held and what did not", async () => {
    const { printed, result } = await run(
      evidence(async (report) => {
        report.check("sum", 1 + 1, 2);
        report.check("list", [1], [2]);
        report.figure("3 ms");
      }),
    );
    expect(printed).toEqual([
      "CASE X :: something",
      "ok   sum: expected 2, actual 2",
      "FAIL list: expected [2], actual [1]",
      "note 3 ms",
    ]);
    expect(result).toMatchObject({ passed: 1, failed: 1, figures: ["3 ms"], control: false });
  });

  test("fails when it throws, and when it asserts nothing", async () => {
    const { result: thrown } = await run(
      evidence(async () => {
        throw new Error("no server");
      }),
    );
    expect(thrown.lines).toEqual([{ kind: "FAIL", text: "ended by an error: no server" }]);
    expect((await run(evidence(async () => {}))).result.failed).toBe(1);
  });

  test("that lacks a program is neither passed nor failed", async () => {
    const { result: skipped } = await run(
      evidence(
        async () => {},
        async () => "apt-get install nginx",
      ),
    );
    expect(skipped).toMatchObject({
      passed: 0,
      failed: 0,
      lines: [{ kind: "skipped", text: "apt-get install nginx" }],
    });
  });
});
