// Codes that collide: the primary key decides, and nothing is ever overwritten.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { draftLink } from "../domain/link.ts";
import { createLinkStore } from "./links.ts";

let test_: TestDatabase;
let db: Database;
const author = { owner: "ann", keyId: "k" };
const draft = (target: string) => draftLink({ target }, { ownHosts: [], privateHosts: "allow", now: 0 });

beforeAll(async () => {
  test_ = await createTestDatabase("main");
  db = createDatabase({ url: test_.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
  await test_.sql`INSERT INTO link (code, target, owner, kind, created_by) VALUES
    ('taken-one', 'https://one.example/', 'bob', 'ALIAS', 'k'), ('taken-two', 'https://two.example/', 'bob', 'ALIAS', 'k')`;
});
afterAll(async () => {
  await db.close();
  await test_.drop();
});

/** A store whose random codes are the given ones, in order. */
function storeWith(codes: string[]) {
  const counts = {
    created: { RANDOM: 0, ALIAS: 0 },
    collisions: 0,
    revoked: { revoked: 0, "already-revoked": 0, "not-found": 0 },
  };
  const store = createLinkStore({ db, newCode: () => codes.shift() ?? "out-of-codes", counts });
  return { store, counts };
}
const targets = async () =>
  Object.fromEntries(
    (await test_.sql`SELECT code, target FROM link ORDER BY code`).map(({ code, target }) => [code, target]),
  );

describe("random codes that are taken", () => {
  test("are left to their owners; the third one drawn wins", async () => {
    const { store, counts } = storeWith(["taken-one", "taken-two", "free-code"]);
    const link = await store.create(draft("https://new.example/"), author);
    expect([link.code, counts.collisions, counts.created.RANDOM]).toEqual(["free-code", 2, 1]);
    expect(await targets()).toMatchObject({
      "taken-one": "https://one.example/",
      "taken-two": "https://two.example/",
      "free-code": "https://new.example/",
    });
  });

  test("five times in a row end the creation with a clear refusal, and nothing is written", async () => {
    const { store, counts } = storeWith(Array(5).fill("taken-one"));
    const before = await targets();
    await expect(store.create(draft("https://new.example/"), author)).rejects.toMatchObject({
      code: "code-space-exhausted",
    });
    expect(counts.collisions).toBe(5);
    expect(await targets()).toEqual(before);
  });

  test("in a batch are drawn again for the links that met them, and only for those", async () => {
    const { store } = storeWith(["taken-one", "first-ok", "first-ok", "second-ok", "third-ok"]);
    const outcomes = await store.createBatch(
      ["a", "b", "c"].map((name) => draft(`https://${name}.example/`)),
      author,
    );
    const codes = outcomes.map((outcome) => ("target" in outcome ? `${outcome.code} ${outcome.target}` : outcome));
    expect(codes).toEqual([
      "second-ok https://a.example/",
      "first-ok https://b.example/",
      "third-ok https://c.example/",
    ]);
    expect((await targets())["taken-one"]).toBe("https://one.example/");
  });
});
