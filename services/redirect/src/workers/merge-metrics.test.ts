import { describe, expect, test } from "@jest/globals";
import { createMetrics } from "@linkfence/service-shell";
import { Histogram, Registry } from "prom-client";
import { addEnded, countedOf, renderParts } from "./merge-metrics.ts";
import type { Reading } from "./messages.ts";

async function readingOf(values: { answers: number; waiting: number; seq: number }): Promise<Reading> {
  const metrics = createMetrics();
  metrics.counter("linkfence_answers_total", "answers", () => ({ redirect: values.answers, gone: 1 }), "outcome");
  metrics.gauge("linkfence_clicks_in_flight", "waiting", () => values.waiting);
  metrics.gauge("linkfence_applied_seq", "seq", () => values.seq);
  return (await metrics.read()).filter(({ name }) => !/^linkfence_(process|nodejs)_/.test(name));
}

const samples = async (page: Promise<string> | string) =>
  (await page)
    .split("\n")
    .filter((line) => /^\w/.test(line))
    .sort();

describe("the page of several workers", () => {
  test("adds up counts and amounts, by their labels, and tells anything else of each", async () => {
    const one = await readingOf({ answers: 3, waiting: 2, seq: 7 });
    const two = await readingOf({ answers: 4, waiting: 5, seq: 8 });
    const parts = [
      { worker: "1", reading: one },
      { worker: "2", reading: two },
    ];
    expect(await samples(renderParts(parts, []))).toEqual([
      'linkfence_answers_total{outcome="gone"} 2',
      'linkfence_answers_total{outcome="redirect"} 7',
      'linkfence_applied_seq{worker="1"} 7',
      'linkfence_applied_seq{worker="2"} 8',
      "linkfence_clicks_in_flight 7",
    ]);
  });

  test("adds up histograms bucket by bucket", async () => {
    const observed = async (...seconds: number[]) => {
      const registry = new Registry();
      const took = new Histogram({ name: "took", help: "time", buckets: [1, 2], registers: [registry] });
      for (const each of seconds) took.observe(each);
      return registry.getMetricsAsJSON();
    };
    const parts = [
      { worker: "1", reading: await observed(0.5, 1.5) },
      { worker: "2", reading: await observed(1.5, 9) },
    ];
    expect(await samples(renderParts(parts, []))).toEqual([
      'took_bucket{le="+Inf"} 4',
      'took_bucket{le="1"} 1',
      'took_bucket{le="2"} 3',
      "took_count 4",
      "took_sum 12.5",
    ]);
  });

  test("keeps what workers that ended have counted, and says how many clicks they left; not how they stood", async () => {
    const first = await addEnded([], await readingOf({ answers: 3, waiting: 2, seq: 7 }));
    const both = await addEnded(first, await readingOf({ answers: 10, waiting: 1, seq: 9 }));
    const parts = [{ worker: "1", reading: await readingOf({ answers: 100, waiting: 4, seq: 9 }) }];
    expect(await samples(renderParts(parts, both))).toEqual([
      'linkfence_answers_total{outcome="gone"} 3',
      'linkfence_answers_total{outcome="redirect"} 113',
      'linkfence_applied_seq{worker="1"} 9',
      "linkfence_clicks_in_flight 4",
      "linkfence_clicks_left_total 3",
    ]);
  });

  test("has of a worker that does not answer its counts alone", async () => {
    const reading = countedOf(await readingOf({ answers: 3, waiting: 2, seq: 7 }));
    expect(await samples(renderParts([{ worker: "1", reading }], []))).toEqual([
      'linkfence_answers_total{outcome="gone"} 1',
      'linkfence_answers_total{outcome="redirect"} 3',
    ]);
  });

  test("is not spoilt by being made twice of the same readings", async () => {
    const parts = [{ worker: "1", reading: await readingOf({ answers: 3, waiting: 2, seq: 7 }) }];
    expect(await renderParts(parts, [])).toBe(await renderParts(parts, []));
  });
});
