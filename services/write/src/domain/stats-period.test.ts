import { describe, expect, test } from "@jest/globals";
import { QUARTER_MS, STATS_POINTS_MAX, type StatsQuery } from "@linkfence/contracts";
import fc from "fast-check";
import { describeLinkStats } from "./stats-answer.ts";
import { decidePeriod } from "./stats-period.ts";
import { formatLocal } from "./time-zone.ts";

const NOW = Date.parse("2026-03-31T10:07:08.009Z");
function periodOf(query: StatsQuery, now = NOW) {
  const decision = decidePeriod(query, now);
  if (!decision.ok) throw new Error(decision.fault.detail);
  return decision.period;
}
const startsOf = (query: StatsQuery) => {
  const { zone, edges } = periodOf(query);
  return edges.map((edge) => formatLocal(zone, edge));
};
const faultOf = (query: StatsQuery) => {
  const decision = decidePeriod(query, NOW);
  return decision.ok ? null : `${decision.fault.field}: ${decision.fault.rule}`;
};

describe("a period", () => {
  test("is the last thirty days of UTC by day, up to the end of this quarter of an hour, unless it says otherwise", () => {
    const starts = startsOf({});
    expect([starts.length, starts[0], starts[1]]).toEqual([31, "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"]);
    expect(starts.slice(-2)).toEqual(["2026-03-31T00:00:00Z", "2026-03-31T10:15:00Z"]);
  });

  test("without a beginning has the thirty days of its zone before its end", () => {
    const starts = startsOf({ to: "2026-04-01", timezone: "Europe/Berlin" });
    expect([starts.length, starts[0], starts.at(-1)]).toEqual([
      31,
      "2026-03-02T00:00:00+01:00",
      "2026-04-01T00:00:00+02:00",
    ]);
  });

  test("by day has 23 hours where the clocks go forward", () => {
    expect(startsOf({ from: "2026-03-28", to: "2026-03-31", timezone: "Europe/Berlin" })).toEqual([
      "2026-03-28T00:00:00+01:00",
      "2026-03-29T00:00:00+01:00",
      "2026-03-30T00:00:00+02:00",
      "2026-03-31T00:00:00+02:00",
    ]);
  });

  test("of a zone at a quarter is cut at its own midnights", () => {
    const { edges } = periodOf({ from: "2026-01-01", to: "2026-01-03", timezone: "Asia/Kathmandu" });
    expect(edges.map((edge) => new Date(edge).toISOString().slice(5, 16))).toEqual([
      "12-31T18:15",
      "01-01T18:15",
      "01-02T18:15",
    ]);
  });

  test("has ends at any quarter of an hour, to which others are widened; days and hours stay where they are", () => {
    expect(startsOf({ from: "2026-01-01T22:20:00.5+01:00", to: "2026-01-02T00:00:00.000001Z" })).toEqual([
      "2026-01-01T21:15:00Z",
      "2026-01-02T00:00:00Z",
      "2026-01-02T00:15:00Z",
    ]);
    expect(
      startsOf({ from: "2026-01-01T10:45:00Z", to: "2026-01-01T12:15:00Z", interval: "hour" }).map((at) =>
        at.slice(11, 16),
      ),
    ).toEqual(["10:45", "11:00", "12:00", "12:15"]);
  });

  test.each<[StatsQuery, string]>([
    ...["", "yesterday", "0", "1700000000", "2026-1-1", "2026-02-30", "2026-01-01T00:00:00", "2026-01-01 00:00Z"].map(
      (text): [StatsQuery, string] => [{ from: text }, "from: date-time"],
    ),
    [{ to: "\0" }, "to: date-time"],
    [{ to: "x".repeat(6000) }, "to: date-time"],
    [{ from: "2019-12-31" }, "from: range"],
    [{ to: "2100-01-02" }, "to: range"],
    [{ from: "0000-01-01" }, "from: range"],
    [{ from: "2026-01-02", to: "2026-01-02" }, "from: order"],
    [{ from: "2026-01-01T00:01:00Z", to: "2026-01-01T00:01:00Z" }, "from: order"],
    [{ from: "2026-04-01" }, "from: order"],
    [{ from: "2023-07-01" }, "from: points"],
    [{ from: "2026-02-01", interval: "hour" }, "from: points"],
    [{ timezone: "+01:00" }, "timezone: timezone"],
    [{ timezone: "Nowhere" }, "timezone: timezone"],
  ])("is refused: %j by the rule %s", (query, rule) => {
    expect(faultOf(query)).toBe(rule);
  });

  test("may have a thousand points, and not one more", () => {
    const from = (days: number) => new Date(NOW - days * 86_400_000).toISOString().slice(0, 10);
    expect(periodOf({ from: from(STATS_POINTS_MAX - 1) }).edges).toHaveLength(STATS_POINTS_MAX + 1);
    expect(faultOf({ from: from(STATS_POINTS_MAX) })).toBe("from: points");
  });
});

describe("a series", () => {
  const anyPeriod = fc
    .record({
      timezone: fc.constantFrom(...Intl.supportedValuesOf("timeZone"), "UTC"),
      interval: fc.constantFrom("hour" as const, "day" as const),
      start: fc.integer({ min: Date.parse("2020-01-02T00:00Z"), max: Date.parse("2039-01-01T00:00Z") }),
      minutes: fc.integer({ min: 1, max: 40 * 24 * 60 }),
    })
    .map(({ timezone, interval, start, minutes }) => {
      const [from, to] = [start, start + minutes * 60_000].map((at) => new Date(at).toISOString()) as [string, string];
      return { timezone, interval, from, to };
    });

  test("covers its period without hole or overlap, in any zone", () => {
    fc.assert(
      fc.property(anyPeriod, (query) => {
        const { edges } = periodOf(query);
        const [from, to] = [edges[0] ?? 0, edges.at(-1) ?? 0];
        expect(from <= Date.parse(query.from) && from > Date.parse(query.from) - QUARTER_MS).toBe(true);
        expect(to >= Date.parse(query.to) && to < Date.parse(query.to) + QUARTER_MS).toBe(true);
        edges.slice(1).forEach((edge, index) => {
          expect([edge > (edges[index] ?? 0), edge % QUARTER_MS]).toEqual([true, 0]);
        });
      }),
    );
  });

  test("has the sums of its steps, each under the time at which it starts", () => {
    fc.assert(
      fc.property(anyPeriod, fc.infiniteStream(fc.nat(1000)), (query, numbers) => {
        const period = periodOf(query);
        const next = () => numbers.next().value as number;
        const series = period.edges.slice(1).map((): [number, number, number] => [next(), next(), next()]);
        const sum = (place: 0 | 1 | 2) => series.reduce((all, step) => all + step[place], 0);
        const sums = { total: sum(0), bots: sum(1), prefetches: sum(2) };
        const stats = describeLinkStats(period, { code: "abc", ...sums, series, top: null, dropped: [] });
        expect(stats.series.map(({ start }) => Date.parse(start))).toEqual(period.edges.slice(0, -1));
        expect(stats.series.reduce((all, { total }) => all + total, 0)).toBe(stats.total);
        expect(stats.from).toBe(stats.series[0]?.start);
        expect(Date.parse(stats.to)).toBe(period.edges.at(-1));
      }),
    );
  });
});
