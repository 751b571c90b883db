import { readdir, readFile, stat } from "node:fs/promises";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { createProcessTable } from "./process-table.ts";
import type { LocalPostgres } from "./start.ts";
import { createTrial, gone, isRunning, withSql } from "./trial.fixture.ts";

describe("a running embedded server", () => {
  const trial = createTrial();
  const lines: string[] = [];
  const note = (line: string) => lines.push(line);
  let dataDir = "";
  let server: LocalPostgres;

  beforeAll(async () => {
    dataDir = join(await trial.directory(), "deep", "data");
    const logger = { info: note, warn: note, error: note };
    server = await trial.start({ dataDir, databases: ["linkfence", "linkfence_stats"], logger });
  });
  afterAll(trial.cleanUp);

  test.each(["linkfence", "linkfence_stats"])("has the database %s, alike on every machine", async (name) => {
    const [facts] = await withSql(
      server.url(name),
      (sql) => sql`SELECT current_database() AS name, pg_encoding_to_char(encoding) AS encoding, datcollate, datctype,
                          current_setting('timezone') AS timezone, current_setting('data_checksums') AS checksums
                   FROM pg_database WHERE datname = current_database()`,
    );

    expect(facts).toEqual({
      name,
      encoding: "UTF8",
      datcollate: "C",
      datctype: "C",
      timezone: "UTC",
      checksums: "on",
    });
  });

  test("keeps its safe settings", async () => {
    const rows = await withSql(
      server.url("postgres"),
      (sql) => sql`SELECT name, setting FROM pg_settings WHERE name IN ('max_connections', 'unix_socket_directories',
                     'idle_in_transaction_session_timeout', 'listen_addresses', 'fsync') ORDER BY name`,
    );

    expect(rows.map(({ name, setting }) => [name, setting])).toEqual([
      ["fsync", "off"], // asked for by the test
      ["idle_in_transaction_session_timeout", "30000"],
      ["listen_addresses", "127.0.0.1"],
      ["max_connections", "100"],
      ["unix_socket_directories", ""],
    ]);
  });

  test("wants the password", async () => {
    const wrong = new URL(server.url("postgres"));
    wrong.password = "guessed";
    const attempt = withSql(wrong.href, (sql) => sql`SELECT 1`);

    await expect(attempt).rejects.toMatchObject({ code: "28P01" });
  });

  test("answers on loopback only", async () => {
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((address) => address?.family === "IPv4" && !address.internal)
      .map((address) => address?.address ?? "");

    const reached = await Promise.all(others.map((host) => answers(host, server.port)));

    expect(await answers(server.host, server.port)).toBe(true); // the probe can tell
    expect(reached).not.toContain(true);
  });

  test("does not run as root", async () => {
    const facts = await createProcessTable().find(server.pid);

    expect(facts?.uid).not.toBe(0);
    expect(facts?.uid).toBe((await stat(join(dataDir, "cluster"))).uid);
  });

  test("shows its password nowhere but in its file, which is closed to others", async () => {
    const password = new URL(server.url("postgres")).password;
    // A statement that fails is logged whole.
    await withSql(server.url("postgres"), (sql) => sql.unsafe(`ALTER ROLE nobody_here PASSWORD '${password}'`)).catch(
      () => undefined,
    );
    const file = join(dataDir, "superuser-password");
    const processes = await createProcessTable().list();
    const serverLog = await readFile(join(dataDir, "server.log"), "utf8");

    expect((await readFile(file, "utf8")).trim()).toBe(password);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(serverLog).toContain("nobody_here");
    expect(serverLog).not.toContain(password);
    expect([...server.serverLog(), ...lines].join("\n")).not.toContain(password);
    expect(processes.map(({ commandLine }) => commandLine).join("\n")).not.toContain(password);
    expect((await stat(join(dataDir, "cluster"))).mode & 0o777).toBe(0o700);
  });

  test("leaves no scratch files behind", async () => {
    expect((await readdir(dataDir)).sort()).toEqual(["cluster", "server.log", "superuser-password"]);
  });
});

describe("an embedded server over several starts", () => {
  const trial = createTrial();
  afterEach(trial.cleanUp);
  afterAll(trial.close);

  test("keeps its data and password, and creates the databases that are new", async () => {
    const dataDir = await trial.directory();
    const first = await trial.start({ dataDir, databases: ["one"] });
    await withSql(first.url("one"), (sql) => sql`CREATE TABLE kept AS SELECT 42 AS answer`);
    await first.stop();

    const second = await trial.start({ dataDir, databases: ["one", "two"] });

    expect(await withSql(second.url("one"), (sql) => sql`SELECT answer FROM kept`)).toEqual([{ answer: 42 }]);
    expect(await withSql(second.url("two"), (sql) => sql`SELECT 1 AS there`)).toEqual([{ there: 1 }]);
    expect(new URL(second.url("one")).password).toBe(new URL(first.url("one")).password);
  });

  test("leaves no process and no pid file when stopped, however often", async () => {
    const dataDir = await trial.stoppedCluster();
    const server = await trial.start({ dataDir });
    const before = (await createProcessTable().list()).filter(({ commandLine }) =>
      commandLine.includes(`${server.pid}`),
    );
    const guard = before.find(({ commandLine }) => commandLine.includes("linkfence-postgres-guard"));

    await Promise.all([server.stop(), server.stop()]);
    await server.stop();

    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(await isRunning(server.pid)).toBe(false);
    expect(guard).toBeDefined();
    await gone(guard?.pid ?? 0);
    expect(await readdir(join(dataDir, "cluster"))).not.toContain("postmaster.pid");
  });

  test("listens on the port it was given", async () => {
    const dataDir = await trial.stoppedCluster();
    const first = await trial.start({ dataDir });
    await first.stop();

    const second = await trial.start({ dataDir, port: first.port });

    expect(second.port).toBe(first.port);
    expect(new URL(second.url("postgres")).port).toBe(String(first.port));
  });

  test("tells its caller when it ends on its own", async () => {
    const server = await trial.start({ dataDir: await trial.stoppedCluster() });

    process.kill(server.pid, "SIGTERM"); // as an operator would: waits for sessions, here none

    expect(await server.exited).toEqual({ code: 0, signal: null });
    await server.stop();
  });
});

async function answers(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
    socket.on("timeout", () => {
      socket.destroy();
      resolve(false);
    });
  });
}
