import type { RunningServer } from "./http-server.ts";
import type { Metrics } from "./metrics.ts";

/** Registers what a server tells about its connections; the bounds are those of `listen`. */
export function registerServerMetrics({ counter, gauge }: Metrics, { stats }: Pick<RunningServer, "stats">): void {
  gauge("linkfence_http_connections", "open connections", () => stats().open);
  counter("linkfence_http_connections_refused_total", "connections beyond the bound", () => stats().refused);
  counter("linkfence_http_unreadable_total", "requests never read whole", () => stats().unreadable, "kind");
}
