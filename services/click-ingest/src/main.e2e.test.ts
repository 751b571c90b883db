import { spawn } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createTestDatabase,
  type RunningService,
  spawnProcess,
  startFaultProxy,
  startService,
  type TestDatabase,
} from "@linkfence/testkit";
import { bearer } from "./test-support/bearer.ts";
import { postBatch, sendUntilAnswered } from "./test-support/resending-sender.ts";
import { sampleClicks } from "./test-support/sample-clicks.ts";
import { scrapeLedger, scrapeSums } from "./test-support/scrape.ts";

const SECRET_URL = "postgres://ingest:hush-hush@127.0.0.1:1/stats";

describe("a configuration that does not fit", () => {
  test.each([
    ["PORT", "3000abc"],
    ["PORT", "-1"],
    ["PORT", "70000"],
    ["PORT", ""],
    ["PORT", "tcp://10.0.0.1:8080"],
    ["OPS_PORT", "x"],
    ["LOG_LEVEL", "loud"],
    ["BATCH_MAX", "1e3"],
    ["INTAKE_MAX_CLICKS", "5"],
    ["INTAKE_MAX_BYTES", "1"],
    ["WRITE_TIMEOUT_MS", "60000"],
    ["QUERY_TIMEOUT_MS", "soon"],
    ["DATABASE_POOL_MAX", "0"],
    ["CLICK_INGEST_SECRET", "hush-hush"],
    ["HOST", "0.0.0.0"],
    ["STATS_DATABASE_URL", "postgres://ingest:hush-hush#x@127.0.0.1/stats"],
    ["STATS_DATABASE_URL", "mysql://ingest:hush-hush@127.0.0.1/stats"],
  ])("ends the process with 78 and names the variable, never a secret: %s=%s", async (name, value) => {
    const child = spawnProcess("services/click-ingest/dist/main.js", { STATS_DATABASE_URL: SECRET_URL, [name]: value });
    expect(await child.exited).toEqual({ code: 78, signal: null });
    expect(child.output()).toContain(name);
    expect(child.output()).not.toContain("hush-hush");
  });

  test("is named too when the database is missing", async () => {
    const child = spawnProcess("services/click-ingest/dist/main.js", {});
    expect(await child.exited).toEqual({ code: 78, signal: null });
    expect(child.output()).toContain("STATS_DATABASE_URL is required");
  });
});

describe("the service", () => {
  let database: TestDatabase;
  const services: RunningService[] = [];

  beforeAll(async () => {
    database = await createTestDatabase("stats");
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.stop()));
  });
  afterAll(() => database.drop());

  async function start(env: Record<string, string> = {}): Promise<RunningService> {
    const service = await startService("click-ingest", { STATS_DATABASE_URL: database.url, ...env });
    services.push(service);
    return service;
  }

  test("starts with its database down, says so, and does its work as soon as it is up", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    proxy.set("refuse");
    const service = await start({ STATS_DATABASE_URL: proxy.through(database.url), WRITE_TIMEOUT_MS: "300" });
    const probe = () => fetch(`${service.opsUrl}/readyz`);
    expect((await fetch(`${service.opsUrl}/livez`)).status).toBe(200);
    const red = await probe();
    expect([red.status, await red.text()]).toEqual([503, "not ready: the statistics database does not answer\n"]);
    const clicks = sampleClicks(5, { code: "waiting" });
    expect(await postBatch(service.url, clicks)).toBeUndefined();
    expect((await fetch(`${service.url}/v1/links/waiting/stats`)).status).toBe(503);
    proxy.set("pass");
    expect(await sendUntilAnswered(service.url, clicks)).toMatchObject({ received: 5, refused: 0 });
    expect((await probe()).status).toBe(200);
    const stats = await fetch(`${service.url}/v1/links/waiting/stats`);
    expect(await stats.json()).toMatchObject({ code: "waiting", total: 5 });
    await proxy.close();
  });

  test("shows its ledger, its bounds and its pools as metrics", async () => {
    const service = await start();
    await sendUntilAnswered(service.url, sampleClicks(5));
    expect(await scrapeLedger(service.opsUrl)).toMatchObject({ received: 5, inserted: 5, missing: 0, inFlight: 0 });
    const sum = await scrapeSums(service.opsUrl);
    for (const name of ["intake_clicks", "intake_bytes", "bodies_reading", "database_calls_pending"]) {
      expect(sum(`linkfence_ingest_${name}`)).toBe(0);
    }
    expect(sum("linkfence_ingest_rows_stored_total")).toBe(5);
    expect(sum("linkfence_ingest_batches_stored_total")).toBe(1);
    expect(sum("linkfence_ingest_database_sockets")).toBeGreaterThanOrEqual(1);
  });

  test("listens to those alone who know its secret, which it never writes", async () => {
    const secret = "hush-hush-".repeat(4);
    const service = await start({ CLICK_INGEST_SECRET: secret, LOG_LEVEL: "debug" });
    expect(await postBatch(service.url, sampleClicks(1))).toBeUndefined();
    expect((await fetch(`${service.url}/v1/links/sample/stats`)).status).toBe(401);
    const headers = { Authorization: bearer(secret) };
    expect((await fetch(`${service.url}/v1/links/sample/stats`, { headers })).status).toBe(200);
    expect((await scrapeSums(service.opsUrl))("linkfence_ingest_unauthorized_total")).toBe(2);
    await service.stop();
    expect(service.output()).not.toContain("hush-hush");
  });

  test("stops in good order when nobody reads its output any more", async () => {
    const child = spawn(process.execPath, ["services/click-ingest/dist/main.js"], {
      env: { STATS_DATABASE_URL: database.url, PORT: "0", OPS_PORT: "0" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.stdout.destroy();
    child.stderr.destroy();
    const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: 0, signal: null });
  });

  test("never writes the password of its database, stopped or running", async () => {
    const service = await start({ LOG_LEVEL: "debug" });
    await postBatch(service.url, sampleClicks(1));
    await service.stop();
    const { password } = new URL(database.url);
    expect(password).not.toBe("");
    expect(service.output()).not.toContain(password);
  });
});
