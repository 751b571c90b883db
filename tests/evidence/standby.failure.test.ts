// A redirect process whose database is a standby that lags: what it reads there may have been revoked long ago.
import { afterAll, expect, test } from "@jest/globals";
import { createDatabase } from "@linkfence/db";
import { startFaultProxy, waitFor } from "@linkfence/testkit";
import { createLinkReader, StandbyAnswer } from "../../services/redirect/src/store/links.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { startOwnServer, startStandby } from "./own-server.ts";

const undo: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const each of undo.reverse()) await each();
});

test("a link is not read from a standby, which still has it when it was revoked, but from what it becomes", async () => {
  const primary = await startOwnServer();
  undo.push(primary.close);
  const [code = ""] = await insertLinks(primary.sql, "standby", 1);
  const replication = await startFaultProxy(primary.port);
  undo.push(replication.close);
  const standby = await startStandby(primary, replication.port);
  undo.push(standby.close);
  replication.set("refuse");
  await revokeLinks(primary.sql, code);

  const database = createDatabase({ url: standby.url, applicationName: "test", max: 1, queryTimeoutMs: 10_000 });
  undo.push(() => database.close());
  const read = createLinkReader(database);
  await expect(read([code])).rejects.toThrow(StandbyAnswer);
  await expect(read(["absent"])).rejects.toThrow(StandbyAnswer);
  // The control: the row itself says that the link is active.
  const [row] = await database.read((sql) => sql`SELECT state FROM redirect_link WHERE code = ${code}`);
  expect(row?.state).toBe("ACTIVE");

  await standby.sql`SELECT pg_promote(true, 30)`;
  await waitFor("the new primary's answer", async () => (await read([code]).catch(() => [null]))[0] !== null);
});
