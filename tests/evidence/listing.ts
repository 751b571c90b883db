// Pages of an owner's links: each link once while others come and go, and a price that does not grow with the depth.
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "../../services/write/src/api-world.fixture.ts";
import { type PageQuery, selectPage } from "../../services/write/src/store/page-rows.ts";
import { createPlanner, LIMIT, type Planner, PRICE } from "./page-prices.ts";
import type { EvidenceCase, Report } from "./report.ts";

const LINKS = 60;
/** Links of one instant: as many as a batch would make. */
const TIES = 3;
const PAGE = 7;
const CREATED_BETWEEN = 2;

/** Reads one page; null where there is no next one. */
type ReadPage = (index: number) => Promise<string[]>;

/** Creates links, reads page after page, and creates and revokes between them, until a page is not full. */
async function walk(world: ApiWorld, readPage: ReadPage) {
  await world.database.sql`
    INSERT INTO link (code, target, owner, kind, created_by, created_at)
    SELECT 'old-' || n, 'https://example.com/', 'admin', 'ALIAS', 'k',
           timestamptz '2026-01-01' + n / ${TIES}::int * interval '1 microsecond' FROM generate_series(1, ${LINKS}::int) n`;
  const seen: string[] = [];
  let pages = 0;
  for (let full = true; full; pages++) {
    const codes = await readPage(pages);
    seen.push(...codes.filter((code) => code.startsWith("old-")));
    full = codes.length === PAGE;
    for (let i = 0; i < CREATED_BETWEEN; i++) await world.create({ target: "https://example.com/" });
    for (const code of [seen.at(-1), `old-${pages + 1}`]) await world.api("DELETE", `/v1/links/${code}`);
  }
  const distinct = new Set(seen).size;
  return { pages, listed: distinct, repeated: seen.length - distinct };
}

export const l1: EvidenceCase = {
  id: "L1",
  shows: "sixty links are listed page by page while others are created and some revoked: each of them once",
  async run(report) {
    await withApi(async (world) => {
      let after = "";
      const { pages, ...outcome } = await walk(world, async () => {
        const { json } = await world.api<{ items: { code: string }[]; next: string | null }>(
          "GET",
          `/v1/links?limit=${PAGE}${after}`,
        );
        after = `&after=${json.next}`;
        return json.items.map(({ code }) => code);
      });
      report.check("links", outcome, { listed: LINKS, repeated: 0 });
      report.check("pages", pages, Math.floor(LINKS / PAGE) + 1);
    });
  },
};

export const l1c: EvidenceCase = {
  id: "L1c",
  shows: "pages that are counted off from the newest link list a link again for each one that was created meanwhile",
  control: true,
  async run(report) {
    await withApi(async (world) => {
      const { pages, ...outcome } = await walk(world, async (index) => {
        const rows = await world.database.sql<{ code: string }[]>`
          SELECT code FROM link WHERE owner = 'admin' ORDER BY created_at DESC, code DESC
           LIMIT ${PAGE} OFFSET ${index * PAGE}`;
        return rows.map(({ code }) => code);
      });
      report.check("links", outcome, { listed: LINKS, repeated: CREATED_BETWEEN * (pages - 1) });
    });
  },
};

async function withApi(use: (world: ApiWorld) => Promise<void>): Promise<void> {
  const world = await startApiWorld();
  try {
    await use(world);
  } finally {
    await world.stop();
  }
}

const SEEDED = 60_000;
/** The last but a thousand of them. */
const DEEP = { createdAt: "2026-01-01T00:00:00.500000Z", code: "code1500" };

const PRICES: readonly [string, Partial<PageQuery["filter"]>, number][] = [
  ["of all links", {}, PRICE.plain],
  [
    "of a stretch of time",
    { createdAfter: "2026-01-01T00:00:00.100000Z", createdBefore: "2026-01-01T00:00:09.000000Z" },
    PRICE.plain,
  ],
  ["of active links", { state: "active" }, PRICE.plain],
  ["of revoked links, of which there are three", { state: "revoked" }, PRICE.plain],
  ["by a tag of half the links", { tag: "all" }, PRICE.byTag],
  ["by a tag of few links", { tag: "rare" }, PRICE.byTag],
  ["of expired links, with a scan that finds none", { state: "expired" }, PRICE.scan],
  ["by tag and state, with a scan that finds none", { tag: "all", state: "revoked" }, PRICE.scanByTag],
];

export const l2: EvidenceCase = {
  id: "L2",
  shows:
    "a page costs as many buffers far down a list of forty thousand links as at its top, give or take a turned index page, whatever the filter",
  async run(report) {
    const database = await createTestDatabase("main");
    const planner = createPlanner(database.url);
    try {
      await seed(database);
      for (const [what, filter, bound] of PRICES) await comparePrices(report, planner, { what, filter, bound });
      const offset = await planner.explain(
        (sql) => sql`
        SELECT * FROM link WHERE owner = 'big' ORDER BY created_at DESC, code COLLATE "C" DESC LIMIT ${LIMIT} OFFSET 39000`,
      );
      report.check(`the same page by OFFSET costs more than ${PRICE.plain}`, offset > PRICE.plain, true);
      report.note(`by OFFSET: ${offset} buffers`);
    } finally {
      await planner.end();
      await database.drop();
    }
  },
};

type Priced = { what: string; filter: Partial<PageQuery["filter"]>; bound: number };

async function comparePrices(report: Report, planner: Planner, { what, filter, bound }: Priced): Promise<void> {
  const all = { state: null, tag: null, createdAfter: null, createdBefore: null };
  const price = (after: PageQuery["after"]) =>
    planner.explain((sql) => selectPage(sql, { owner: "big", filter: { ...all, ...filter }, limit: LIMIT, after }));
  const [first, deep] = [await price(null), await price(DEEP)];
  report.check(
    `a page ${what}: at most ${bound} buffers, and far down at most ${PRICE.turns} more than at the top`,
    { first: first <= bound, deep: deep <= bound, grows: deep > first + PRICE.turns },
    { first: true, deep: true, grows: false },
  );
  const text = `${what}: first page ${first}, far down ${deep} buffers`;
  if (filter.state === undefined && filter.tag === undefined && filter.createdAfter === undefined) report.figure(text);
  else report.note(text);
}

/** One owner with two thirds of the links, half of those under one tag, a thirtieth with an expiry that is far off. */
async function seed({ sql }: TestDatabase): Promise<void> {
  await sql`
    INSERT INTO link (code, target, owner, kind, created_by, created_at, tags, expires_at)
    SELECT 'code' || n, 'https://example.com/' || n, CASE WHEN n % 3 < 2 THEN 'big' ELSE 'small' || n % 1000 END, 'RANDOM',
           'k', timestamptz '2026-01-01' + n / 3 * interval '1 ms',
           CASE WHEN n % 9000 = 1 THEN '{rare,all}' WHEN n % 3 = 0 THEN '{all}' ELSE '{}' END::text[],
           CASE WHEN n % 15 = 0 THEN timestamptz '2999-01-01' END
      FROM generate_series(1, ${SEEDED}::int) AS n`;
  await sql`SELECT revoke_links('{code3,code6,code9}', 'big', 'k')`;
  await sql`VACUUM ANALYZE link, link_tag`;
}
