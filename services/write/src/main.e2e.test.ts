// Start and stop of the process.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type FaultProxy,
  makeAdminKey,
  sendChecked,
  spawnProcess,
  startFaultProxy,
  startService,
  type TestDatabase,
  waitUntilReady,
} from "@linkfence/testkit";

let database: TestDatabase;
let proxy: FaultProxy;
beforeAll(async () => {
  database = await createTestDatabase("main");
  proxy = await startFaultProxy(Number(new URL(database.url).port));
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

describe("a start", () => {
  test.each([
    ["PORT", "3000abc"],
    ["PORT", "70000"],
    ["PORT", "-1"],
    ["PORT", ""],
    ["OPS_PORT", "tcp://10.0.0.1:8080"],
    ["PUBLIC_BASE_URL", "https://sho.example/path"],
    ["PUBLIC_BASE_URL", "sho.example"],
    ["TARGET_PRIVATE_HOSTS", "false"],
    ["DATABASE_POOL_MAX", "0"],
    ["LOG_LEVEL", "loud"],
    ["DATABASE_URL", "postgres://user:hunter#two@127.0.0.1/db"],
    ["DATABASE_URL", "postgres://user:hunter@two@127.0.0.1/db"],
    ["DATABASE_URL", "postgres://user:hunter%two@127.0.0.1/db"],
    ["DATABASE_URL", "postgres://user:hunter/two@127.0.0.1/db"],
    ["DATABASE_URL", ""],
  ])("with %s=%s is refused with the name of the variable and without any secret", async (name, value) => {
    const child = spawnProcess("services/write/dist/main.js", { DATABASE_URL: database.url, [name]: value });
    expect((await child.exited).code).toBe(78);
    expect(child.output()).toContain(`- ${name} `);
    expect(child.output()).not.toMatch(/hunter|at .*\.js/);
  });

  test("with several bad variables names all of them at once", async () => {
    const env = { PORT: "x", QUERY_TIMEOUT_MS: "fast", PUBLIC_BASE_URL: "ftp://sho.example" };
    const child = spawnProcess("services/write/dist/main.js", env);
    expect((await child.exited).code).toBe(78);
    for (const name of [...Object.keys(env), "DATABASE_URL"]) expect(child.output()).toContain(`- ${name} `);
  });

  test("without its database is alive, not ready, answers 503, and recovers by itself", async () => {
    const key = await makeAdminKey(database.url);
    proxy.set("refuse");
    const write = await startService("write", { DATABASE_URL: proxy.through(database.url) });
    const http = createHttpClient();
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const create = () =>
      sendChecked(http, write.url, "/v1/links", { method: "POST", headers, body: '{"target":"https://example.com/"}' });
    expect((await fetch(`${write.opsUrl}/livez`)).status).toBe(200);
    expect((await fetch(`${write.opsUrl}/readyz`)).status).toBe(503);
    const refused = await create();
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, expect.any(String)]);
    expect(JSON.parse(refused.body)).toMatchObject({ code: "unavailable" });
    proxy.set("pass");
    await waitUntilReady(write);
    expect((await create()).status).toBe(201);
    http.close();
    expect(await write.stop()).toEqual({ code: 0, signal: null });
  });
});

describe("the command that makes the first admin key", () => {
  test("makes one, however many run at once, and says so without the secret", async () => {
    const own = await createTestDatabase("main");
    const { mkdtemp, readFile, rm } = await import("node:fs/promises");
    const directory = await mkdtemp("/tmp/linkfence-key-");
    const run = () =>
      spawnProcess("services/write/dist/admin-key.js", { DATABASE_URL: own.url }, ["--file", `${directory}/key`]);
    const commands = [run(), run(), run()];
    for (const command of commands) expect((await command.exited).code).toBe(0);
    const answers = commands.map((command) => JSON.parse(command.output()) as { created: boolean });
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(await own.sql`SELECT id FROM api_key`).toHaveLength(1);
    const key = (await readFile(`${directory}/key`, "utf8")).trim();
    expect(key).toMatch(/^linkfence_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
    for (const command of commands) expect(command.output()).not.toContain(key.slice(-43));
    await rm(directory, { recursive: true });
    await own.drop();
  });
});
