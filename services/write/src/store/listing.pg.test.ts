// Pages against a model: whatever is created, revoked and edited between them, a link that was there all the time is
// listed once, in its order.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { createCounts } from "../counts.ts";
import type { ListFilter } from "../domain/list-query.ts";
import { createLinkStore } from "./links.ts";
import { createLinkListing } from "./listing.ts";
import { SCAN_MAX } from "./page-rows.ts";

const ALL: ListFilter = { state: null, tag: null, createdAfter: null, createdBefore: null };
let database: TestDatabase;
let db: Database;
let owners = 0;
let codes = 0;
const counts = createCounts();

beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const newOwner = () => `owner-${owners++}`;
/** A code whose place among its equals is not the order of creation. */
const newCode = () => `${"zMa_-"[codes % 5]}${(codes++ * 7919) % 100_003}-x`;

type Row = { code?: string; at: string; tags?: string[]; expiresAt?: string };
async function insert(owner: string, { code = newCode(), at, tags = [], expiresAt }: Row): Promise<string> {
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by, created_at, tags, expires_at)
    VALUES (${code}, 'https://example.com/', ${owner}, 'ALIAS', 'k', ${at}::text::timestamptz, ${tags},
            ${expiresAt ?? null}::text::timestamptz)`;
  return code;
}
const revoke = (owner: string, code: string) =>
  database.sql`SELECT * FROM revoke_links(${[code]}::text[], ${owner}, 'k')`;
const micros = (n: number) => `2026-01-01T00:00:00.${String(n).padStart(6, "0")}Z`;

/** Reads all pages; `between` runs after each. */
async function walk(owner: string, limit: number, over: Partial<ListFilter> = {}, between = async () => {}) {
  const listing = createLinkListing(db, counts);
  const seen: string[] = [];
  let pages = 0;
  for (let after: string | null = null; ; pages++) {
    const page = await listing.list({ owner, filter: { ...ALL, ...over }, limit, after });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    // More than any list here has links: a walk that stands still is ended.
    expect(pages).toBeLessThan(200);
    seen.push(...page.items.map(({ createdAt, code }) => `${createdAt} ${code}`));
    if (page.next === null) return { seen, pages: pages + 1 };
    after = page.next;
    await between();
  }
}

const newestFirst = (lines: readonly string[]) => [...lines].sort().reverse();
const codesOf = (lines: readonly string[]) => lines.map((line) => line.split(" ")[1]);

describe("a walk through all pages", () => {
  const step = fc.record({
    what: fc.constantFrom("create", "revoke", "tag"),
    // Few instants, so that many links share one, before and behind where the walk stands.
    at: fc.integer({ min: 0, max: 9 }),
    which: fc.nat(),
  });

  test("lists every link that was there all the time once and in order, whatever happens between the pages", async () => {
    const scenario = fc.record({
      instants: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 15 }),
      steps: fc.array(step, { maxLength: 30 }),
      limit: fc.integer({ min: 1, max: 7 }),
      tag: fc.constantFrom(null, "t"),
      // Between these instants, themselves left out.
      window: fc.constantFrom(null, [1, 7] as const),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ instants, steps, limit, tag, window }) => {
        const [owner, stranger] = [newOwner(), newOwner()];
        const old = new Map<string, string>();
        for (const at of instants) old.set(await insert(owner, { at: micros(at), tags: ["t", "u"] }), micros(at));
        await insert(stranger, { at: micros(5), tags: ["t"] });
        const times = window && { createdAfter: micros(window[0]), createdBefore: micros(window[1]) };
        const inside = (at: string) => !times || (at > times.createdAfter && at < times.createdBefore);
        const known = [...old].flatMap(([code, at]) => (inside(at) ? [`${at} ${code}`] : []));
        const added = new Map<string, string>();
        const rest = [...steps];
        const act = async () => {
          for (const { what, at, which } of rest.splice(0, 2)) {
            const code = [...old.keys()][which % old.size] ?? "";
            if (what === "create") added.set(await insert(owner, { at: micros(at), tags: ["t"] }), micros(at));
            else if (what === "revoke") await revoke(owner, code);
            else await database.sql`UPDATE link SET tags = array_append(tags, ${`n${at}`}) WHERE code = ${code}`;
          }
        };
        const { seen } = await walk(owner, limit, { tag, ...times }, act);
        expect(seen.filter((line) => old.has(line.split(" ")[1] ?? ""))).toEqual(newestFirst(known));
        expect(seen).toEqual(newestFirst([...new Set(seen)]));
        const all = new Set([...old.keys(), ...added.keys()]);
        expect(codesOf(seen).filter((code) => !all.has(code ?? ""))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("by state lists a link that stays as it is once, and one that changes at most once", async () => {
    const scenario = fc.record({
      kinds: fc.array(fc.constantFrom("active", "expired", "revoked"), { minLength: 1, maxLength: 15 }),
      victims: fc.array(fc.nat(), { maxLength: 8 }),
      limit: fc.integer({ min: 1, max: 7 }),
      state: fc.constantFrom("active", "expired", "revoked"),
      tag: fc.constantFrom(null, "t"),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ kinds, victims, limit, state, tag }) => {
        const owner = newOwner();
        const links: { line: string; code: string; kind: string }[] = [];
        for (const [i, kind] of kinds.entries()) {
          const at = micros(i % 4);
          const expiresAt = kind === "expired" ? "2026-01-02T00:00:00Z" : "2999-01-01T00:00:00Z";
          const code = await insert(owner, { at, tags: ["t"], ...(i % 2 || kind === "expired" ? { expiresAt } : {}) });
          if (kind === "revoked") await revoke(owner, code);
          links.push({ line: `${at} ${code}`, code, kind });
        }
        const changed = new Set<string>();
        const rest = [...victims];
        const act = async () => {
          const { code, kind } = links[(rest.pop() ?? 0) % links.length] ?? { code: "", kind: "" };
          if (kind === "revoked" || rest.length === 0) return;
          changed.add(code);
          await revoke(owner, code);
        };
        const { seen } = await walk(owner, limit, { state, tag }, act);
        const steady = links.filter(({ kind, code }) => kind === state && !changed.has(code)).map(({ line }) => line);
        expect(seen.filter((line) => !changed.has(line.split(" ")[1] ?? ""))).toEqual(newestFirst(steady));
        expect(new Set(seen).size).toBe(seen.length);
      }),
      { numRuns: 40 },
    );
  });

  test("parts links that were created a microsecond apart, and links of one instant", async () => {
    const owner = newOwner();
    const times = [1, 2, 2, 2, 3, 999_999, 0];
    const lines: string[] = [];
    for (const n of times) lines.push(`${micros(n)} ${await insert(owner, { at: micros(n) })}`);
    for (let limit = 1; limit <= 7; limit++) expect((await walk(owner, limit)).seen).toEqual(newestFirst(lines));
    const between = await walk(owner, 2, { createdAfter: micros(1), createdBefore: micros(3) });
    expect(between.seen).toEqual(newestFirst(lines).filter((line) => line.startsWith(micros(2))));
  });

  test("by tag finds a link under each of its tags once, however often it has it, and no longer when it is taken off", async () => {
    const owner = newOwner();
    const tags = ["t", "t", 'NULL "\\{},\u2028🍞', " "];
    const code = await insert(owner, { at: micros(1), tags });
    for (const tag of tags) expect(codesOf((await walk(owner, 1, { tag })).seen)).toEqual([code]);
    expect((await walk(owner, 1, { tag: "T" })).seen).toEqual([]);
    await database.sql`UPDATE link SET tags = '{new,t}' WHERE code = ${code}`;
    for (const tag of ["t", "new"]) expect(codesOf((await walk(owner, 1, { tag })).seen)).toEqual([code]);
    expect((await walk(owner, 1, { tag: " " })).seen).toEqual([]);
    await database.sql`UPDATE link SET tags = '{}' WHERE code = ${code}`;
    const [row] = await database.sql`SELECT count(*)::int AS n FROM link_tag WHERE owner = ${owner}`;
    expect(row?.n).toBe(0);
  });
});

test("a page counted off from the newest, as OFFSET does, repeats a link as soon as one is created", async () => {
  const owner = newOwner();
  for (const n of [1, 2, 3, 4]) await insert(owner, { at: micros(n) });
  const page = (offset: number) => database.sql<{ code: string }[]>`
    SELECT code FROM link WHERE owner = ${owner} ORDER BY created_at DESC, code DESC LIMIT 2 OFFSET ${offset}`;
  const first = await page(0);
  await insert(owner, { at: micros(5) });
  const second = await page(2);
  expect(second[0]?.code).toBe(first[1]?.code);
});

test("a filter that few links pass ends a page at its bound, and the next one goes on from there", async () => {
  const owner = newOwner();
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by, created_at, tags)
    SELECT 'many-' || n, 'https://example.com/', ${owner}, 'ALIAS', 'k',
           timestamptz '2026-01-01' + n / 2 * interval '1 microsecond', '{t}' FROM generate_series(1, ${2 * SCAN_MAX}) n`;
  const found = [1, SCAN_MAX, SCAN_MAX + 1].map((n) => `many-${n}`);
  for (const code of found) await revoke(owner, code);
  counts.listingsCut = 0;
  const { seen, pages } = await walk(owner, 2, { tag: "t", state: "revoked" });
  expect(codesOf(seen)).toEqual([...found].reverse());
  // The newest half of the links holds one, at its end; the older half two, the last of them at its end.
  expect([pages, counts.listingsCut]).toEqual([3, 2]);
});

test("without a key for cursors a listing says what to do; a newer key signs, an older one still verifies until it is gone", async () => {
  const owner = newOwner();
  for (const n of [1, 2]) await insert(owner, { at: micros(n) });
  const listing = createLinkListing(db, counts);
  const list = (after: string | null) => listing.list({ owner, filter: ALL, limit: 1, after });
  const old = (await list(null)).next;
  await database.sql`INSERT INTO cursor_key DEFAULT VALUES`;
  expect((await list(old)).items).toHaveLength(1);
  const fresh = (await list(null)).next;
  expect(fresh?.split("~")[0]).not.toBe(old?.split("~")[0]);
  await database.sql`DELETE FROM cursor_key WHERE id = ${Number(old?.split("~")[0])}`;
  await expect(list(old)).rejects.toMatchObject({ code: "invalid-cursor" });
  expect((await list(fresh)).items).toHaveLength(1);
  await database.sql`DELETE FROM cursor_key`;
  await expect(list(null)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/INSERT INTO/),
  });
  await database.sql`INSERT INTO cursor_key DEFAULT VALUES`;
});

test("titles, tags and notes change alone and together, and nothing else does", async () => {
  const owner = newOwner();
  const code = await insert(owner, { at: micros(1), tags: ["t"] });
  const links = createLinkStore({ db, newCode, counts });
  const before = await links.find(code, owner);
  const change = fc.record(
    {
      title: fc.constantFrom(null, "", "T", "NULL", '"\\'),
      tags: fc.constantFrom<string[]>([], ["a", "NULL", "a,b"], ["t"]),
      note: fc.constantFrom(null, "N", "n".repeat(2000), "🍞".repeat(2000)),
    },
    { requiredKeys: [] },
  );
  let model = before;
  await fc.assert(
    fc.asyncProperty(change, async (changes) => {
      model = model && { ...model, ...changes };
      expect(await links.update(code, owner, changes)).toEqual(model);
      expect(await links.find(code, owner)).toEqual(model);
    }),
    { numRuns: 30 },
  );
  expect(await links.update(code, "somebody-else", { title: "mine" })).toBeUndefined();
  expect(model?.version).toBe(1);
});
