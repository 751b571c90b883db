import { describe, expect, test } from "@jest/globals";
import { compareRuns } from "./against.ts";
import { judgeShares, type Verdict } from "./bottleneck.ts";
import { createRandom, createZipf } from "./click-load.ts";
import { compareRate, measuredRounds, whyNot } from "./compare.ts";
import { parseCoreTimes, readList } from "./cores.ts";
import { ratios, spreadOf } from "./numbers.ts";
import { createResults, type Sample } from "./results.ts";

const GOOD: Verdict = "the server was the limit";
const LOAD: Verdict = "the load was the bottleneck";
const OTHERS: Verdict = "others used the machine";

describe("who was the limit", () => {
  const quiet = { server: 0.97, loadCore: 0.7, foreign: 0.02, steal: 0 };
  test.each([
    ["a server whose core is full", {}, GOOD],
    ["a server whose core is full, beside a load whose core is full too", { loadCore: 1 }, GOOD],
    ["a load whose core is full, while the server's is not", { server: 0.6, loadCore: 0.97 }, LOAD],
    ["neither of them", { server: 0.6, loadCore: 0.7 }, "nobody was"],
    ["whoever else uses the machine, however full the server's core is", { foreign: 0.2 }, OTHERS],
    ["the machine below", { steal: 0.06 }, OTHERS],
  ] as const)("%s", (_, shares, verdict) => {
    expect(judgeShares({ ...quiet, ...shares })).toBe(verdict);
  });

  test("rounds are left out in pairs, and too few of them say nothing", () => {
    const a = { verdicts: [GOOD, OTHERS, GOOD, GOOD, GOOD] };
    const b = { verdicts: [GOOD, GOOD, LOAD, GOOD, GOOD] };
    expect(measuredRounds(a, b)).toEqual([0, 3, 4]);
    expect(measuredRounds(a, { verdicts: [LOAD, GOOD, LOAD, GOOD, GOOD] })).toEqual([]);
    expect([whyNot(a.verdicts), whyNot([LOAD, OTHERS, LOAD]), whyNot([GOOD])]).toEqual([OTHERS, LOAD, null]);
  });
});

describe("a ratio", () => {
  const rounds = (rate: number[], verdict: Verdict) => ({ rate, verdicts: rate.map(() => verdict) });
  const compare = (to: Verdict, bound?: number, of: Verdict = GOOD) => {
    const results = createResults(() => {});
    compareRate(results, "hot, ours ÷ theirs", rounds([50, 60, 40], of), rounds([100, 100, 100], to), bound);
    return results;
  };

  test("is judged by the median of its rounds, and kept with their spread", () => {
    const { claims, samples, refused } = compare(GOOD, 0.5);
    expect(claims).toMatchObject([{ held: true, value: "0.5 (0.4 to 0.6)" }]);
    expect(samples).toEqual([{ what: "hot, ours ÷ theirs", better: "more", median: 0.5, low: 0.4, high: 0.6 }]);
    expect(refused).toEqual([]);
    expect(compare(GOOD, 0.51).claims).toMatchObject([{ held: false }]);
  });

  test("is not reported where the load was the bottleneck, and it is said for which of the two", () => {
    expect(compare(GOOD, 0.1, LOAD)).toMatchObject({
      claims: [],
      samples: [],
      refused: ["hot, ours ÷ theirs: for ours, the load was the bottleneck"],
    });
    expect(compare(LOAD, 0.1)).toMatchObject({
      claims: [],
      refused: ["hot, ours ÷ theirs: for theirs, the load was the bottleneck"],
    });
  });

  test("is broken also where the load kept only the other back", () => {
    expect(compare(LOAD, 0.6).claims).toMatchObject([{ what: "hot, ours ÷ theirs, at the most", held: false }]);
    expect(compare(OTHERS, 0.6).claims).toEqual([]);
  });

  test("is of the same round", () => {
    expect(ratios([10, 40], [20, 20])).toEqual([0.5, 2]);
    expect(ratios([10, 40], [20])[1]).toBeNaN();
    expect(spreadOf([3, 1, 2])).toEqual({ median: 2, low: 1, high: 3 });
  });

  test("of a quick run fails on a collapse alone", () => {
    const results = createResults(() => {}, true);
    for (const value of [0.36, 0.34]) results.atLeast("more", value, 0.7);
    for (const value of [4.9, 5.1]) results.atMost("less", value, 2.5);
    expect(results.claims.map(({ held }) => held)).toEqual([true, false, true, false]);
  });
});

describe("a run against an earlier one", () => {
  const sample = (what: string, better: "more" | "less", [low, median, high]: [number, number, number]): Sample => ({
    ...{ what, better, low, median, high },
  });
  const earlier = [sample("rate", "more", [0.7, 0.75, 0.8]), sample("p99", "less", [2, 2.2, 2.5])];
  const verdicts = (rate: [number, number, number], p99: [number, number, number]) =>
    compareRuns(earlier, [sample("rate", "more", rate), sample("p99", "less", p99)]).map(({ verdict }) => verdict);

  test("is slower where it is worse by more than the spread of both", () => {
    expect(verdicts([0.6, 0.65, 0.7], [2.6, 2.8, 3])).toEqual(["slower", "slower"]);
  });
  test("is alike where the spread of either is as wide as the difference", () => {
    expect(verdicts([0.5, 0.65, 0.78], [2.1, 2.8, 3])).toEqual(["alike", "alike"]);
    expect(verdicts([0.7, 0.71, 0.72], [2, 2.4, 2.5])).toEqual(["alike", "alike"]);
  });
  test("is faster the other way round", () => {
    expect(verdicts([0.9, 0.95, 1], [1, 1.1, 1.2])).toEqual(["faster", "faster"]);
  });
  test("says what it has not measured", () => {
    expect(compareRuns(earlier, []).map(({ verdict }) => verdict)).toEqual(["missing", "missing"]);
  });
});

test("Zipf's law: the n-th code comes about 1/n as often as the first, and the same seed gives the same codes", () => {
  const draw = () => {
    const pick = createZipf(1000, createRandom(8));
    return Array.from({ length: 100_000 }, pick);
  };
  const drawn = draw();
  expect(draw()).toEqual(drawn);
  const times = new Array(1000).fill(0);
  for (const rank of drawn) times[rank] += 1;
  // 100,000 ÷ 7.485, the sum of 1/n up to 1000: 13,360 for the first, whose standard deviation is 108.
  expect(Math.abs(times[0] - 13_360)).toBeLessThan(700);
  expect(Math.abs(times[1] / times[0] - 0.5)).toBeLessThan(0.05);
  expect(Math.abs(times[9] / times[0] - 0.1)).toBeLessThan(0.02);
});

test("what the kernel says of its cores", () => {
  expect(readList("0-2,5")).toEqual([0, 1, 2, 5]);
  expect(readList("")).toEqual([]);
  const stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 10 0 0 90 0 0 0 1 0 0\nintr 7\n";
  expect([...parseCoreTimes(stat)]).toEqual([
    [0, { busy: 190, stolen: 80 }],
    [1, { busy: 100, stolen: 10 }],
  ]);
});
