// One run held against an earlier one. Only ratios are compared: other figures say as much about the machine and the hour.
import { readFile } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { Check } from "typebox/value";
import type { Sample } from "./results.ts";

const sampleSchema = Type.Object({
  what: Type.String(),
  better: Type.Union([Type.Literal("more"), Type.Literal("less")]),
  median: Type.Number(),
  low: Type.Number(),
  high: Type.Number(),
});
/** What is read of a result file; what else is in it is for people. */
const documentSchema = Type.Object({
  subject: Type.String(),
  links: Type.Integer(),
  quick: Type.Boolean(),
  samples: Type.Array(sampleSchema),
});

export type Earlier = Static<typeof documentSchema>;

/** Reads the result file of an earlier run. Throws where it is none. */
export async function readEarlier(file: string): Promise<Earlier> {
  const document: unknown = JSON.parse(await readFile(file, "utf8"));
  if (!Check(documentSchema, document)) throw new Error("it is no result file of pnpm bench");
  return document;
}

export type Comparison = {
  what: string;
  was: Sample;
  is: Sample | null;
  verdict: "slower" | "faster" | "alike" | "missing";
};

/**
 * Says of each ratio of the earlier run what became of it. It is slower when it is worse by more than the spread: the
 * median of each run lies on its own side of all the rounds of the other.
 */
export function compareRuns(earlier: readonly Sample[], now: readonly Sample[]): Comparison[] {
  return earlier.map((was) => {
    const is = now.find(({ what }) => what === was.what) ?? null;
    return { what: was.what, was, is, verdict: is === null ? "missing" : judge(was, is) };
  });
}

function judge(was: Sample, is: Sample): Comparison["verdict"] {
  const below = is.median < was.low && was.median > is.high;
  const above = is.median > was.high && was.median < is.low;
  if (!below && !above) return "alike";
  return below === (was.better === "more") ? "slower" : "faster";
}
