// Streams of changes while the database is away, mute or cut off: they stay, and then bring everything once.
import { expect, test } from "@jest/globals";
import {
  addApiKey,
  createTestDatabase,
  type FaultMode,
  readMetric,
  startFaultProxy,
  startService,
  testServerUrl,
  until,
  waitUntilReady,
} from "@linkfence/testkit";
import { openReader } from "./changes/reader.fixture.ts";

test.each<[string, FaultMode]>([
  ["refuses connections", "refuse"],
  ["takes connections and never answers", "hang"],
])("a database that %s leaves streams open; when it is back they miss nothing", async (_what, mode) => {
  const database = await createTestDatabase("main");
  const { sql } = database;
  const proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
  const write = await startService("write", {
    DATABASE_URL: proxy.through(database.url),
    CLICK_INGEST_URL: "http://127.0.0.1:1",
    QUERY_TIMEOUT_MS: "500",
  });
  await waitUntilReady(write);
  const key = await addApiKey(sql, { owner: "ann", scopes: ["links:read"] });
  let links = 0;
  const revokeNew = async (count: number) => {
    const codes = Array.from({ length: count }, () => `link-${links++}`);
    await sql`INSERT INTO link (code, target, owner, kind, created_by)
      SELECT code, 'https://example.com/', 'ann', 'ALIAS', 'k' FROM unnest(${codes}::text[]) AS code`;
    await sql`SELECT FROM revoke_links(${codes}::text[], 'ann', 'k')`;
    return codes;
  };

  const reader = await openReader(write.url, { key });
  const codes = await revokeNew(3);
  await reader.received(3);
  for (let round = 0; round < 2; round += 1) {
    const failures = () => readMetric(write, 'linkfence_change_stream_failures_total{what="head"}');
    const before = await failures();
    proxy.set(mode);
    codes.push(...(await revokeNew(500)));
    await until(async () => (await failures()) >= before + 3);
    expect(reader.state.ended).toBe(false);
    const refused = await openReader(write.url, { key });
    expect(refused.status).toBe(503);
    proxy.set("pass");
    proxy.reset();
    codes.push(...(await revokeNew(1)));
    await reader.received(codes.length);
    expect(reader.codes()).toEqual(codes);
  }
  const told = write
    .records()
    .map(({ message }) => message)
    .filter((message) => message.startsWith("changes can"));
  expect(told.slice(0, 2)).toEqual(["changes cannot be read; their streams wait", "changes can be read again"]);

  reader.close();
  await write.stop();
  await proxy.close();
  await database.drop();
});
