import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";

export type Metrics = ReturnType<typeof createMetrics>;
type Reading = number | Record<string, number>;

/**
 * Creates the registry of one process. Counters live as plain numbers with those who count; they are read when the
 * page is asked for, so that nothing on a hot path pays for it.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkfence_" });

  /** A number that only grows. With a `label`, `read` returns one number for each of its values. */
  function counter(name: string, help: string, read: () => Reading, label?: string): void {
    new Counter({
      name,
      help,
      registers: [registry],
      labelNames: label ? [label] : [],
      collect() {
        this.reset();
        eachReading(read(), label, (value, labels) => this.inc(labels, value));
      },
    });
  }

  /** A number that goes up and down. */
  function gauge(name: string, help: string, read: () => Reading, label?: string): void {
    new Gauge({
      name,
      help,
      registers: [registry],
      labelNames: label ? [label] : [],
      collect() {
        this.reset();
        eachReading(read(), label, (value, labels) => this.set(labels, value));
      },
    });
  }

  return { counter, gauge, contentType: registry.contentType, render: () => registry.metrics() };
}

function eachReading(
  reading: Reading,
  label: string | undefined,
  use: (value: number, labels: Record<string, string>) => void,
): void {
  if (typeof reading === "number") use(reading, {});
  else for (const [key, value] of Object.entries(reading)) use(value, label ? { [label]: key } : {});
}
