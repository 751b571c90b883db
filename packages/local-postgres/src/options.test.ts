import { describe, expect, test } from "@jest/globals";
import { readOptions } from "./options.ts";

describe("the options of the embedded server", () => {
  test("need nothing but a data directory", () => {
    const plan = readOptions({ dataDir: "/data" });

    expect(plan).toMatchObject({ dataDir: "/data", port: 0, databases: [], settings: {}, startTimeoutMs: 60_000 });
  });

  test.each([
    ["a relative data directory", { dataDir: "data" }, /dataDir must be an absolute path/],
    ["a port beyond 65535", { port: 65_536 }, /port must be an integer/],
    ["a fraction as port", { port: 1.5 }, /port must be an integer/],
    ["a database name with a quote", { databases: ['a"b'] }, /databases: "a"b" must match/],
    ["a database name PostgreSQL would cut", { databases: ["a".repeat(64)] }, /databases/],
    ["a deadline of zero", { stopTimeoutMs: 0 }, /stopTimeoutMs must be a positive number/],
    ["a deadline that setTimeout takes for none", { startTimeoutMs: 2 ** 31 }, /startTimeoutMs/],
    ["another listen address", { settings: { listen_addresses: "*" } }, /"listen_addresses" cannot be set/],
    ["a reserved setting in capitals", { settings: { PORT: "1" } }, /"PORT" cannot be set/],
    ["a forged owner", { settings: { "linkfence.owner_pid": "1" } }, /cannot be set/],
    ["a setting name that smuggles a second one", { settings: { "work_mem=1MB port": "1" } }, /cannot be set/],
    ["a setting value with NUL", { settings: { work_mem: "1\0" } }, /must be a string without NUL/],
  ])("refuse %s", (_, options, message) => {
    expect(() => readOptions({ dataDir: "/data", ...options })).toThrow(message);
  });
});
