import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import express from "express";
import { Type } from "typebox";
import { ConfigError, readConfig, setting } from "./config.ts";

const schema = Type.Object({
  PORT: setting.port({ default: 7000, description: "port" }),
  FEATURE: setting.flag({ default: true, description: "flag" }),
  CACHE_MAX: setting.integer(1, 100, { default: 10, description: "bound" }),
  MODE: setting.choice(["allow", "deny"], { default: "allow", description: "mode" }),
  BASE_URL: setting.httpUrl({ default: "http://127.0.0.1:1", description: "url" }),
  DATABASE_URL: setting.databaseUrl({ default: "postgres://u@h/d", description: "database" }),
  NEEDED: setting.text({ description: "required" }),
  PROXIES: Type.Optional(setting.proxyList({ description: "proxies" })),
});
const read = (env: Record<string, string>) => readConfig(schema, { NEEDED: "x", ...env });

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    read(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

describe("a configuration", () => {
  test("is typed, and filled up with defaults", () => {
    expect(read({ PORT: "8080", FEATURE: "false" })).toMatchObject({
      PORT: 8080,
      FEATURE: false,
      CACHE_MAX: 10,
      MODE: "allow",
    });
  });

  test.each([
    ["PORT", "3000abc"],
    ["PORT", "-1"],
    ["PORT", "70000"],
    ["PORT", ""],
    ["PORT", "tcp://10.0.0.1:8080"],
    ["PORT", "0x1F90"],
    ["PORT", "1e3"],
    ["PORT", " 8080"],
    ["PORT", "80.5"],
    ["CACHE_MAX", "abc"],
    ["CACHE_MAX", "0"],
    ["CACHE_MAX", "101"],
    ["FEATURE", "no"],
    ["FEATURE", "1"],
    ["FEATURE", "TRUE"],
    ["MODE", "maybe"],
    ["BASE_URL", "ftp://example.com"],
    ["BASE_URL", "http://user:secretword@example.com"],
    ["BASE_URL", "example.com"],
    ["NEEDED", ""],
  ])("with %s=%p is refused, and the variable named", (name, value) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name} `));
    expect(faults[0]).not.toContain("secretword");
  });

  test.each([
    "postgres://u:sec#ret@h/db",
    "postgres://u:sec@ret@h/db",
    "postgres://u:sec%ret@h/db",
    "postgres://u:sec%ff@h/db",
    "postgres://u:sec/ret@h/db",
    "postgres://u:sec?ret@h/db",
    "postgres://u:sec:ret@h/db",
    "postgres://u:secret@/db",
    "postgres://u:secret@h",
    "postgres://u:secret@h:99999/db",
    "mysql://u:secret@h/db",
    "secret",
  ])("with the database URL %p is refused, and nothing of it repeated", (value) => {
    const [fault, ...more] = faultsOf({ DATABASE_URL: value });
    expect(more).toEqual([]);
    expect(fault).toMatch(/^DATABASE_URL must be a postgres:\/\/ URL/);
    expect(fault).not.toMatch(/sec|ret@/);
  });

  test.each([
    "postgres://u:p%23%40%2F@h:5432/db",
    "postgresql://h/db",
    "postgres://u@[::1]:5432/db?sslmode=require",
    "postgres://u:p@one:5432,two:5433/db",
  ])("with the database URL %p is taken", (value) => {
    expect(read({ DATABASE_URL: value }).DATABASE_URL).toBe(value);
  });

  test("is refused for all its faults at once", () => {
    const faults = faultsOf({ PORT: "x", FEATURE: "y", MODE: "z", DATABASE_URL: "w" });
    expect(faults.map((fault) => fault.split(" ", 1)[0]).sort()).toEqual(["DATABASE_URL", "FEATURE", "MODE", "PORT"]);
  });

  test("is refused without what is required", () => {
    expect(() => readConfig(schema, {})).toThrow("NEEDED is required");
  });
});

describe("a value kept in a file", () => {
  const directory = mkdtempSync(join(tmpdir(), "linkfence-config-"));
  const file = join(directory, "secret");
  writeFileSync(file, "from the file\n");
  afterAll(() => rmSync(directory, { recursive: true }));

  test("is read, less its last line break", () => {
    expect(readConfig(schema, { NEEDED_FILE: file }).NEEDED).toBe("from the file");
  });

  test("is refused beside the variable itself", () => {
    expect(() => readConfig(schema, { NEEDED: "x", NEEDED_FILE: file })).toThrow("NEEDED and NEEDED_FILE are both set");
  });

  test("is refused when it cannot be read", () => {
    expect(() => readConfig(schema, { NEEDED_FILE: join(directory, "nothing") })).toThrow("NEEDED_FILE names a file");
  });
});

describe("a list of proxies", () => {
  test.each([
    "10.0.0.0/8",
    "10.1.2.3",
    "2001:db8::/32, ::1",
    "loopback,linklocal , uniquelocal",
    "::ffff:10.0.0.1",
    "192.168.0.1/32,fd00::1/128",
  ])("%s is taken, by Express too", (text) => {
    expect(read({ PROXIES: text }).PROXIES).toBe(text);
    const names = text.split(",").map((name) => name.trim());
    expect(express().set("trust proxy", names).get("trust proxy fn")("8.8.8.8", 0)).toBe(false);
  });

  test.each([
    "true",
    "false",
    "1",
    "*",
    "",
    ",",
    "10.0.0.0/8,",
    "10.0.0.0/0",
    "::/0",
    "10.0.0.0/33",
    "::1/129",
    "10.0.0.0/08",
    "10.0.0.0/8/8",
    "10.0.0.0/255.0.0.0",
    "10.0.0",
    "010.0.0.1",
    "proxy.example",
    "fe80::1%eth0",
    "10.0.0.1 10.0.0.2",
    "loopback/8",
    "everybody",
  ])("%p is refused, and the variable named", (text) => {
    const faults = faultsOf({ PROXIES: text });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^PROXIES must /);
  });
});
