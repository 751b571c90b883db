import { expect, test } from "@jest/globals";
import { createTestDatabase, runRights, until } from "@linkfence/testkit";
import postgres from "postgres";
import { setUpAsDeployed } from "./main-schema.fixture.ts";

test("databases of one server can be set up at the same time, though their roles are the server's", async () => {
  const databases = await Promise.all(Array.from({ length: 4 }, () => createTestDatabase("empty")));
  const setUp = databases.map(async ({ sql }) => {
    for (let times = 0; times < 5; times += 1) await runRights(sql, "roles");
  });
  expect((await Promise.allSettled(setUp)).map(({ status }) => status)).toEqual(Array(4).fill("fulfilled"));
  await Promise.all(databases.map((database) => database.drop()));
});

test("a listener that begins a transaction and stays in it keeps no revocation from being committed, and is ended", async () => {
  const database = await createTestDatabase("empty");
  const owner = await database.sql.reserve();
  await setUpAsDeployed(owner);
  await owner`RESET SESSION AUTHORIZATION`;
  await owner`ALTER ROLE linkfence_redirect PASSWORD 'of this test'`;
  await owner`INSERT INTO link (code, target, owner, kind, created_by) VALUES ('one', 'https://a.example/', 'ann', 'ALIAS', 'k')`;
  const url = new URL(database.url);
  [url.username, url.password] = ["linkfence_redirect", "of this test"];
  const listener = postgres(url.href, { max: 1, onnotice: () => {} });
  const [session] = await listener`SELECT pg_backend_pid() AS pid`;
  await listener.unsafe("LISTEN link_changed; BEGIN").simple();
  const state = () => owner`SELECT state FROM pg_stat_activity WHERE pid = ${session?.pid}`;
  expect(await state()).toMatchObject([{ state: "idle in transaction" }]);
  expect(await owner`SELECT outcome FROM revoke_links('{one}', 'ann', 'k')`).toMatchObject([{ outcome: "revoked" }]);
  await until(async () => (await state()).length === 0);
  owner.release();
  await listener.end({ timeout: 1 });
  await database.drop();
});
