import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";

export type Metrics = ReturnType<typeof createMetrics>;
/** One number, one for each value of the label, or samples with all their labels. */
type Reading = number | Record<string, number> | readonly Sample[];
type Sample = { labels: Record<string, string>; value: number };

/**
 * Creates the registry of one process. Counters live as plain numbers with those who count; they are read when the
 * page is asked for, so that nothing on a hot path pays for it.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkfence_" });

  /**
   * A number that only grows. With one `label`, `read` returns one number for each of its values; with several, samples.
   */
  function counter(name: string, help: string, read: () => Reading, label?: string | readonly string[]): void {
    new Counter({
      name,
      help,
      registers: [registry],
      labelNames: label ? [label].flat() : [],
      collect() {
        this.reset();
        eachReading(read(), label, (value, labels) => this.inc(labels, value));
      },
    });
  }

  /** A number that goes up and down. */
  function gauge(name: string, help: string, read: () => Reading, label?: string | readonly string[]): void {
    new Gauge({
      name,
      help,
      registers: [registry],
      labelNames: label ? [label].flat() : [],
      collect() {
        this.reset();
        eachReading(read(), label, (value, labels) => this.set(labels, value));
      },
    });
  }

  return {
    counter,
    gauge,
    contentType: registry.contentType,
    render: () => registry.metrics(),
    /** The same as data, for a page of several processes. */
    read: () => registry.getMetricsAsJSON(),
  };
}

function eachReading(
  reading: Reading,
  label: string | readonly string[] | undefined,
  use: (value: number, labels: Record<string, string>) => void,
): void {
  if (typeof reading === "number") use(reading, {});
  else if (isSamples(reading)) for (const { labels, value } of reading) use(value, labels);
  else
    for (const [key, value] of Object.entries(reading)) use(value, typeof label === "string" ? { [label]: key } : {});
}

function isSamples(reading: Reading): reading is readonly Sample[] {
  return Array.isArray(reading);
}
