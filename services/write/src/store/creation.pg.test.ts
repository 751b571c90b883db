// What creation leaves in the database: times, texts, notifications, and nothing done twice.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type CreateLinkRequest, Problem } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import fc from "fast-check";
import { createCounts } from "../counts.ts";
import { draftLink } from "../domain/link.ts";
import type { StoredLink } from "./link-rows.ts";
import { createLinkStore } from "./links.ts";

let database: TestDatabase;
let db: Database;
let codes = 0;
const newCode = () => `random-${codes++}`;
const author = { owner: "ann", keyId: "k" };
const draft = (request: Partial<CreateLinkRequest> = {}) =>
  draftLink({ target: "https://example.com/", ...request }, { ownHosts: [], privateHosts: "allow", now: 0 });
const storeWith = (code: () => string) => createLinkStore({ db, newCode: code, counts: createCounts() });
const store = () => storeWith(newCode);

/** Creates a link alone, and an equal one in a batch. */
async function createBothWays(request: Partial<CreateLinkRequest>): Promise<StoredLink[]> {
  const [inBatch] = await store().createBatch([draft(request)], author);
  if (!inBatch || inBatch instanceof Problem) throw new Error("the batch refused the link");
  return [await store().create(draft(request), author), inBatch];
}

beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

describe("an expiry", () => {
  test("keeps its microseconds, whatever its offset", async () => {
    for (const { expiresAt, expired } of await createBothWays({ expiresAt: "2035-01-31T12:00:00.123456+03:00" }))
      expect({ expiresAt, expired }).toEqual({ expiresAt: "2035-01-31T09:00:00.123456Z", expired: false });
  });

  test("in seconds is counted from the creation by the database's clock", async () => {
    for (const { code } of await createBothWays({ expiresInSeconds: 3_155_760_000 })) {
      const [row] = await database.sql`
        SELECT (extract(epoch FROM expires_at) - extract(epoch FROM created_at))::float AS life FROM link WHERE code = ${code}`;
      expect(row?.life).toBe(3_155_760_000);
    }
  });

  test("is judged at each reading; a link without one never expires", async () => {
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at) VALUES
      ('past', 'https://a.example/', 'ann', 'ALIAS', 'k', now() - interval '1 microsecond'),
      ('future', 'https://a.example/', 'ann', 'ALIAS', 'k', now() + interval '1 hour'),
      ('endless', 'https://a.example/', 'ann', 'ALIAS', 'k', NULL)`;
    const links = await Promise.all(["past", "future", "endless"].map((code) => store().find(code, "ann")));
    expect(links.map((link) => link?.expired)).toEqual([true, false, false]);
  });
});

test("titles and tags come back as they were, alone and in a batch", async () => {
  const texts = fc.string({ unit: "binary", maxLength: 40 }).filter((text) => !text.includes("\0"));
  const special = fc.constantFrom("NULL", "null", "{}", 'a"b', "a\\b", "a,b", " ", "\u2028", "\r\n", "🍞", "\\x00");
  const tags = fc.array(
    fc.oneof(texts, special).filter((tag) => tag !== ""),
    { maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(texts, special), tags, async (title, tags) => {
      for (const link of await createBothWays({ title, tags })) {
        expect([link.title, link.tags]).toEqual([title, tags]);
        expect(await store().find(link.code, "ann")).toEqual(link);
      }
    }),
    { numRuns: 100 },
  );
});

describe("the hint that a code exists now", () => {
  /** Counts the notifications that `work` causes, up to one sent after it. */
  async function hintsOf(work: () => Promise<unknown>): Promise<string[]> {
    const heard: string[] = [];
    const { unlisten } = await database.sql.listen("link_created", (payload) => heard.push(payload));
    await work();
    await database.sql`SELECT pg_notify('link_created', 'last')`;
    await until(() => heard.at(-1) === "last");
    await unlisten();
    return heard.slice(0, -1);
  }

  const create = (alias: string) => store().create(draft({ alias }), author);

  test("is sent for an alias, once, and carries nothing", async () => {
    expect(await hintsOf(() => create("hinted"))).toEqual([""]);
  });

  test("is not sent for an alias that is taken, nor for a random code, which nobody can have asked for", async () => {
    await create("taken");
    expect(await hintsOf(() => expect(create("taken")).rejects.toMatchObject({ code: "alias-taken" }))).toEqual([]);
    expect(await hintsOf(() => store().create(draft(), author))).toEqual([]);
  });

  test("is sent once for a batch, and only when one of its aliases was created", async () => {
    const batch = (requests: Partial<CreateLinkRequest>[]) =>
      hintsOf(() => store().createBatch(requests.map(draft), author));
    await create("taken-too");
    expect(await batch([{ alias: "hint-one" }, {}, { alias: "hint-two" }, { alias: "taken-too" }])).toEqual([""]);
    expect(await batch([{ alias: "taken-too" }, {}, { alias: "hint-two" }])).toEqual([]);
  });
});

test("random codes that are taken are, in a batch, drawn again for the links that met them, and only for those", async () => {
  await store().create(draft({ alias: "taken-one" }), author);
  const codes = ["taken-one", "first-ok", "first-ok", "second-ok", "third-ok"];
  const targets = ["a", "b", "c"].map((name) => `https://${name}.example/`);
  const links = storeWith(() => codes.shift() ?? "out-of-codes");
  const drafts = targets.map((target) => draft({ target }));
  const created = (await links.createBatch(drafts, author)).map((outcome) =>
    outcome instanceof Problem ? outcome : `${outcome.code} ${outcome.target}`,
  );
  expect(created).toEqual([
    "second-ok https://a.example/",
    "first-ok https://b.example/",
    "third-ok https://c.example/",
  ]);
  expect((await store().find("taken-one", "ann"))?.target).toBe("https://example.com/");
});

describe("a creation whose connection is lost", () => {
  const lost = Object.assign(new Error("lost"), { code: "CONNECTION_CLOSED" });

  test.each([
    ["alone", "run"],
    ["in a batch", "transaction"],
  ] as const)("(%s) may have been carried out, so it is not tried again with another code", async (_what, method) => {
    let calls = 0;
    const losing = async () => {
      calls += 1;
      throw lost;
    };
    const links = createLinkStore({ db: { ...db, [method]: losing }, newCode, counts: createCounts() });
    const creation = method === "run" ? links.create(draft(), author) : links.createBatch([draft()], author);
    await expect(creation).rejects.toBe(lost);
    expect(calls).toBe(1);
  });
});

test("links of somebody else are neither found nor revoked, and look like links that do not exist", async () => {
  const { code } = await store().create(draft(), author);
  expect(await store().find(code, "bob")).toBeUndefined();
  expect(await store().revoke([code, "no-such-code"], { owner: "bob", keyId: "b" })).toEqual([
    { code, outcome: "not-found", version: -1, seq: null, epoch: expect.any(String) },
    { code: "no-such-code", outcome: "not-found", version: -1, seq: null, epoch: expect.any(String) },
  ]);
  expect((await store().find(code, "ann"))?.state).toBe("ACTIVE");
});

test("a statement that tries to change a target is refused by the database itself", async () => {
  const { code } = await store().create(draft(), author);
  await expect(database.sql`UPDATE link SET target = 'https://evil.example/' WHERE code = ${code}`).rejects.toThrow(
    /immutable/,
  );
  expect((await store().find(code, "ann"))?.target).toBe("https://example.com/");
});
