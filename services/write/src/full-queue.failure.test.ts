// A listener that takes nothing lets the server's queue of notifications fill up. It holds 8 GB on the server of these
// tests, so a commit is made to fail here as one does then: with the same code, at the same moment.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

const fill = () =>
  world.database.sql.unsafe(`
    CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
    END $$;
    CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT ON link_change DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION is_full();
    CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT ON link DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (NEW.kind = 'ALIAS') EXECUTE FUNCTION is_full()`);
const empty = () => world.database.sql.unsafe("DROP FUNCTION is_full() CASCADE");

test("while it is full, revocations and aliases are refused whole as unavailable; random codes are made; then all is possible", async () => {
  const target = "https://example.com/";
  expect((await world.create({ target, alias: "kept" })).status).toBe(201);
  await fill();
  const refused = [
    await world.api("DELETE", "/v1/links/kept"),
    await world.api("POST", "/v1/links:revoke", { codes: ["kept"] }),
    await world.create({ target, alias: "another" }),
  ];
  expect(refused.map(({ status, json }) => [status, json.code])).toEqual(refused.map(() => [503, "unavailable"]));
  expect((await world.create({ target })).status).toBe(201);
  expect((await world.api("GET", "/v1/links/kept")).json.state).toBe("ACTIVE");
  expect(await world.rowsOf("another")).toEqual([]);
  expect(await world.database.sql`SELECT FROM link_change`).toHaveLength(0);

  await empty();
  expect((await world.create({ target, alias: "another" })).status).toBe(201);
  expect((await world.api("DELETE", "/v1/links/kept")).json).toMatchObject({ outcome: "revoked" });
});
