// SIGTERM: what has begun is finished, what is idle is closed, and the process ends with 0.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "@jest/globals";
import { checkRaw, until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

async function openConnection(world: ApiWorld): Promise<Socket> {
  const { hostname, port } = new URL(world.write.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  return socket;
}

/** Statements of the service that wait for a lock. */
async function countWaiting(world: ApiWorld): Promise<number> {
  const [row] = await world.database.sql<{ n: number }[]>`
    SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'linkfence-write' AND wait_event_type = 'Lock'`;
  return row?.n ?? 0;
}

/** Resolves when so many of them wait, or more. */
async function untilWaiting(world: ApiWorld, count: number): Promise<void> {
  await until(async () => (await countWaiting(world)) >= count);
}

test("creations that wait for the database are finished, an idle kept connection is closed, a new one is refused", async () => {
  const world = await startApiWorld({ QUERY_TIMEOUT_MS: "20000", DATABASE_POOL_MAX: "10" });
  const idle = await openConnection(world);
  idle.write("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  const [answer] = await once(idle, "data");
  checkRaw("GET", "/nothing", String(answer));
  const closed = once(idle, "close");

  let answers: Promise<Awaited<ReturnType<ApiWorld["create"]>>[]> = Promise.resolve([]);
  await world.database.sql.begin(async (sql) => {
    await sql`LOCK TABLE link IN SHARE MODE`;
    // Each alias is a statement of its own.
    const target = "https://example.com/";
    const aliases = Array.from({ length: 8 }, (_, n) => world.create({ target, alias: `waiting-${n}` }));
    await untilWaiting(world, 8);
    const random = [world.create({ target })];
    answers = Promise.all([...aliases, ...random]);
    await untilWaiting(world, 9);
    world.write.kill("SIGTERM");
    await world.write.logged(({ message }) => message === "stopping");
    idle.resume();
    await closed;
    await expect(openConnection(world)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
  for (const { status } of await answers) expect(status).toBe(201);
  expect(await world.write.exited).toEqual({ code: 0, signal: null });
  expect(await world.linkCount()).toBe(9);
  await world.stop();
});

test("a client that never finishes its request does not keep the process from ending with 0", async () => {
  const world = await startApiWorld();
  const slow = await openConnection(world);
  slow.on("error", () => {});
  slow.write("POST /v1/links HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  slow.resume();
  expect(await world.write.stop()).toEqual({ code: 0, signal: null });
  await world.stop();
});
