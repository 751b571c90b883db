import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { listen, type RunningServer } from "./http-server.ts";
import { createMetrics } from "./metrics.ts";
import { createOpsHandler, type Readiness } from "./ops-server.ts";

let server: RunningServer;
let readiness: Readiness = { ready: true };
const counts = { "ring-full": 3, other: 0 };

beforeAll(async () => {
  const metrics = createMetrics();
  metrics.counter("linkfence_dropped_total", "dropped, by reason", () => counts, "reason");
  metrics.gauge("linkfence_waiting", "waiting", () => 7);
  const handler = createOpsHandler(metrics, () => readiness);
  server = await listen(handler, { port: 0, host: "127.0.0.1", maxConnections: 10 });
});
afterAll(() => server.close(0));

const ask = (path: string, method = "GET") => fetch(`http://127.0.0.1:${server.port}${path}`, { method });

test("a process that runs is alive, also while it is not ready; the reason is told", async () => {
  readiness = { ready: false, reason: "the database is away" };
  expect((await ask("/livez")).status).toBe(200);
  const red = await ask("/readyz");
  expect([red.status, await red.text()]).toEqual([503, "not ready: the database is away\n"]);
  readiness = { ready: true };
  expect((await ask("/readyz")).status).toBe(200);
});

test("metrics are read when they are asked for", async () => {
  counts["ring-full"] += 1;
  const page = await (await ask("/metrics")).text();
  expect(page).toContain('linkfence_dropped_total{reason="ring-full"} 4');
  expect(page).toContain("linkfence_waiting 7");
  expect(page).toContain("# TYPE linkfence_dropped_total counter");
});

test("anything else is 404 or 405", async () => {
  expect((await ask("/")).status).toBe(404);
  expect((await ask("/livez", "POST")).status).toBe(405);
});
