import { describe, expect, test } from "@jest/globals";
import { ConfigError } from "@linkfence/service-shell";
import { readRedirectConfig } from "./config.ts";

const DATABASE_URL = "postgres://user:secret@127.0.0.1:5432/main";
const read = (env: Record<string, string>) => readRedirectConfig({ DATABASE_URL, ...env });

/** The sentences of a refusal. */
function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    read(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

describe("the configuration", () => {
  test("needs nothing but the database; the rest has the documented defaults", () => {
    expect(read({})).toEqual({
      HOST: "127.0.0.1",
      PORT: 7000,
      OPS_PORT: 7010,
      REDIRECT_WORKERS: 1,
      LOG_LEVEL: "info",
      DATABASE_URL,
      LISTEN_ENABLED: true,
      POLL_INTERVAL_MS: 100,
      CACHE_TTL_MS: 60_000,
      NEGATIVE_TTL_MS: 1000,
      CACHE_MAX_ENTRIES: 1_000_000,
      CACHE_MAX_BYTES: 1_073_741_824,
      QUERY_TIMEOUT_MS: 1000,
      DATABASE_POOL_MAX: 2,
      CLICK_INGEST_URL: "http://127.0.0.1:7002",
      CLICK_QUEUE_CAPACITY: 65_536,
      CLICK_SPOOL: "on",
      CLICK_SPOOL_MAX_BYTES: 1_073_741_824,
      CLICK_SPOOL_SEGMENT_BYTES: 8_388_608,
      STOP_DELAY_MS: 0,
      CLICK_FLUSH_TIMEOUT_MS: 5000,
      MAX_CONNECTIONS: 10_000,
      DEBUG_ENTRY_AGE: false,
    });
  });

  test("takes false for false, and 0 for off", () => {
    const env = { LISTEN_ENABLED: "false", POLL_INTERVAL_MS: "0", NEGATIVE_TTL_MS: "0", DEBUG_ENTRY_AGE: "true" };
    expect(read(env)).toMatchObject({
      LISTEN_ENABLED: false,
      POLL_INTERVAL_MS: 0,
      NEGATIVE_TTL_MS: 0,
      DEBUG_ENTRY_AGE: true,
    });
  });

  test.each([
    ["PORT", "3000abc"],
    ["PORT", "-1"],
    ["PORT", "70000"],
    ["PORT", ""],
    ["OPS_PORT", "tcp://10.0.0.1:8080"],
    ["REDIRECT_WORKERS", "0"],
    ["REDIRECT_WORKERS", "65"],
    ["REDIRECT_WORKERS", "auto"],
    ["LOG_LEVEL", "chatty"],
    ["DATABASE_URL", "postgres://user:pa#ss@127.0.0.1:5432/main"],
    ["DATABASE_URL", "postgres://user:pa@ss@127.0.0.1:5432/main"],
    ["DATABASE_URL", "postgres://user:pa%ss@127.0.0.1:5432/main"],
    ["DATABASE_URL", "mysql://user:pass@127.0.0.1/main"],
    ["LISTEN_DATABASE_URL", "127.0.0.1:5432"],
    ["LISTEN_ENABLED", "yes"],
    ["POLL_INTERVAL_MS", "100ms"],
    ["POLL_INTERVAL_MS", "-100"],
    ["CACHE_TTL_MS", "0"],
    ["CACHE_TTL_MS", "1e3"],
    ["NEGATIVE_TTL_MS", "10001"],
    ["CACHE_MAX_ENTRIES", "abc"],
    ["CACHE_MAX_ENTRIES", "0"],
    ["CACHE_MAX_BYTES", "1"],
    ["QUERY_TIMEOUT_MS", "0"],
    ["DATABASE_POOL_MAX", "0"],
    ["CLICK_INGEST_URL", "http://user:pass@127.0.0.1"],
    ["CLICK_QUEUE_CAPACITY", "0"],
    ["CLICK_SPOOL", "true"],
    ["CLICK_SPOOL_DIR", ""],
    ["CLICK_SPOOL_MAX_BYTES", "65535"],
    ["CLICK_SPOOL_SEGMENT_BYTES", "0"],
    ["CLICK_COUNTRY_HEADER", "CF-IPCountry:"],
    ["CLICK_ADDRESS_HEADER", "X Real IP"],
    ["CLICK_MMDB_FILE", ""],
    ["CLICK_FLUSH_TIMEOUT_MS", "8001"],
    ["MAX_CONNECTIONS", "0x10"],
    ["DEBUG_ENTRY_AGE", "1"],
  ])("refuses %s=%s, names the variable, and repeats nothing of its value", (name, value) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name} `));
    expect(faults[0]).not.toMatch(/pa[#@%]ss|user:/);
  });
});
