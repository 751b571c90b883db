// The server ends the connections of the service: nobody exits, and what comes next works or says 503.
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { terminateConnections, until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeEach(async () => {
  world = await startApiWorld();
});
afterEach(() => world.stop());

const lost = () => world.write.records().filter(({ message }) => message === "a database connection was closed").length;

test("while idle: one warning for each connection, and the next call works", async () => {
  await Promise.all(Array.from({ length: 20 }, () => world.create({ target: "https://example.com/" })));
  const [row] = await world.database.sql<{ n: number }[]>`
    SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'linkfence-write'`;
  const connections = row?.n ?? 0;
  expect(connections).toBeGreaterThan(0);
  await terminateConnections(world.database);
  await until(() => lost() >= connections);
  expect(lost()).toBe(connections);
  expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
});

test("under load, again and again: each answer is 201 or 503, and every 201 is a link that is there", async () => {
  const stop = new AbortController();
  const created: string[] = [];
  const statuses = new Set<number>();
  const worker = async () => {
    while (!stop.signal.aborted) {
      const { status, json } = await world.create({ target: "https://example.com/" });
      statuses.add(status);
      if (status === 201) created.push(String(json.code));
    }
  };
  const load = Promise.all(Array.from({ length: 8 }, worker));
  for (let round = 0; round < 10; round += 1) {
    const before = created.length;
    await until(() => created.length >= before + 20);
    await terminateConnections(world.database);
  }
  stop.abort();
  await load;
  expect([...statuses].filter((status) => status !== 201 && status !== 503)).toEqual([]);
  const rows = await world.database.sql`SELECT code FROM link WHERE code = ANY(${created})`;
  expect(rows).toHaveLength(created.length);
  expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
  expect(world.write.output()).not.toContain("fatal error");
});

test("under batches, again and again: each answer is 200 or 503, and every link of a 200 is there", async () => {
  type Batch = { results: { link?: { code: string } }[] };
  const links = Array.from({ length: 20 }, () => ({ target: "https://example.com/" }));
  const stop = new AbortController();
  const created: string[] = [];
  const statuses = new Set<number>();
  /** A service that is gone answers with 0, and nobody waits for it any longer. */
  const post = () =>
    world.api<Batch>("POST", "/v1/links:batch", { links }).catch(() => ({ status: 0, json: { results: [] } as Batch }));
  const worker = async () => {
    while (!stop.signal.aborted && !statuses.has(0)) {
      const { status, json } = await post();
      statuses.add(status);
      if (status === 200) created.push(...json.results.map(({ link }) => link?.code ?? "none"));
    }
  };
  const load = Promise.all(Array.from({ length: 8 }, worker));
  // With the driver as it is published the process ends within a few rounds.
  for (let round = 0; round < 20; round += 1) {
    const before = created.length;
    await until(() => created.length !== before || statuses.has(0));
    await terminateConnections(world.database);
  }
  stop.abort();
  await load;
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  const rows = await world.database.sql`SELECT code FROM link WHERE code = ANY(${created})`;
  expect(rows).toHaveLength(created.length);
  expect((await post()).status).toBe(200);
  expect(world.write.output()).not.toContain("fatal error");
});
