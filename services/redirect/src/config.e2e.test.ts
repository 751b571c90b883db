import { expect, test } from "@jest/globals";
import { spawnProcess } from "@linkfence/testkit";

test("a process with a bad environment ends with 78, names every bad variable, and prints no secret", async () => {
  const child = spawnProcess("services/redirect/dist/main.js", {
    DATABASE_URL: "postgres://user:hunter#2@127.0.0.1:5432/main",
    LISTEN_DATABASE_URL: "postgres://user:hunter2@127.0.0.1:5432/main",
    PORT: "3000abc",
    OPS_PORT: "tcp://10.0.0.1:8080",
    CACHE_MAX_ENTRIES: "abc",
    LISTEN_ENABLED: "FALSE",
  });
  expect(await child.exited).toEqual({ code: 78, signal: null });
  for (const name of ["DATABASE_URL", "PORT", "OPS_PORT", "CACHE_MAX_ENTRIES", "LISTEN_ENABLED"])
    expect(child.output()).toMatch(new RegExp(`- ${name} `));
  expect(child.output()).not.toContain("LISTEN_DATABASE_URL");
  expect(child.output()).not.toContain("hunter");
});

test("a process without a database URL ends with 78 and says which variable is missing", async () => {
  const child = spawnProcess("services/redirect/dist/main.js", {});
  expect(await child.exited).toEqual({ code: 78, signal: null });
  expect(child.output()).toContain("DATABASE_URL is required");
});
