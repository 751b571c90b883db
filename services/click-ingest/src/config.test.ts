import { describe, expect, test } from "@jest/globals";
import { ConfigError } from "@linkfence/service-shell";
import { configSchema, readIngestConfig } from "./config.ts";

const url = "postgres://ingest:hush-hush@db.example/stats";

describe("the configuration", () => {
  test("needs the database and has a default for everything else", () => {
    expect(readIngestConfig({ STATS_DATABASE_URL: url })).toEqual({
      HOST: "127.0.0.1",
      PORT: 7002,
      OPS_PORT: 7012,
      LOG_LEVEL: "info",
      STATS_DATABASE_URL: url,
      BATCH_MAX: 10_000,
      CLICK_RETENTION_DAYS: 400,
      DIMENSION_VALUES_MAX: 100,
      EXPORT_DISK_MAX_BYTES: 20 * 1024 ** 3,
      EXPORT_LEASE_MS: 30_000,
      EXPORT_QUEUE_MAX: 1000,
      EXPORT_QUEUE_OWNER_MAX: 100,
      EXPORT_RETENTION_HOURS: 168,
      EXPORT_ROWS_MAX: 100_000_000,
      EXPORT_TIMEOUT_MS: 7_200_000,
      EXPORT_WORKERS: 2,
      DEAD_CLICKS_MAX: 10_000,
      DEAD_CLICKS_MAX_BYTES: 67_108_864,
      INTAKE_MAX_CLICKS: 20_000,
      INTAKE_MAX_BYTES: 33_554_432,
      WRITE_TIMEOUT_MS: 5000,
      QUERY_TIMEOUT_MS: 2000,
      DATABASE_POOL_MAX: 4,
    });
  });

  test("describes every variable", () => {
    for (const property of Object.values(configSchema.properties)) expect(property).toHaveProperty("description");
  });

  test.each([
    ["BATCH_MAX", "0"],
    ["CLICK_RETENTION_DAYS", "0"],
    ["DIMENSION_VALUES_MAX", "0"],
    ["DEAD_CLICKS_MAX", "-1"],
    ["DEAD_CLICKS_MAX_BYTES", "1.5"],
    ["CLICK_INGEST_SECRET", "hush-hush"],
    ["CLICK_INGEST_SECRET", `hush-hush ${"x".repeat(32)}`],
    ["INTAKE_MAX_CLICKS", "999"],
    ["INTAKE_MAX_BYTES", "1000"],
    ["WRITE_TIMEOUT_MS", "15001"],
    ["QUERY_TIMEOUT_MS", "200"],
    ["DATABASE_POOL_MAX", "many"],
    ["PORT", "tcp://10.0.0.1:8080"],
    ["LOG_LEVEL", "loud"],
  ])("refuses %s=%s by name", (name, value) => {
    const read = () => readIngestConfig({ STATS_DATABASE_URL: url, [name]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(name);
    expect(read).not.toThrow("hush-hush");
  });

  test("needs a secret wherever others than this machine may call", () => {
    const read = (env: Record<string, string>) => () => readIngestConfig({ STATS_DATABASE_URL: url, ...env });
    for (const HOST of ["0.0.0.0", "::", "10.0.0.1", "127.evil.example", "::ffff:127.0.0.1"]) {
      expect(read({ HOST })).toThrow("CLICK_INGEST_SECRET is required");
      expect(read({ HOST, CLICK_INGEST_SECRET: "x".repeat(32) })).not.toThrow();
    }
    for (const HOST of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) expect(read({ HOST })).not.toThrow();
  });
});
