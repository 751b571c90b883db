import { describe, expect, test } from "@jest/globals";
import { createFailureCounts } from "./failure-counts.ts";

describe("counts of failures", () => {
  test("are kept by code, and by `none` where there is no code", () => {
    const counts = createFailureCounts();
    for (const code of ["55P03", "", "55P03"]) counts.add(code);
    expect(counts.read()).toEqual({ "55P03": 2, none: 1 });
  });

  test("stay few, however many codes there are", () => {
    const counts = createFailureCounts();
    for (let code = 0; code < 1000; code += 1) counts.add(`E${code}`);
    counts.add("E0");
    expect(Object.keys(counts.read())).toHaveLength(51);
    expect(counts.read()).toMatchObject({ E0: 2, other: 950 });
  });
});
