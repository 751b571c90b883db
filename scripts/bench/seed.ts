// Millions of links in minutes, in exactly the schema that the migrations make: indexes and keys of the tables that are
// filled are taken away, and built again from their own definitions at the end; triggers are passed by, and what they
// would have written is written beside. Seeded databases are kept by name and used again.
import { migrate } from "@linkfence/db/migrate";
import type postgres from "postgres";
import { CODE_ALPHABET } from "../../services/write/src/domain/code.ts";
import { describeSchema } from "../schema-dump.ts";
import { type OwnServer, withSql } from "./own-server.ts";

/** Of one tenth of all links: the one whose listing is walked. */
export const BIG_OWNER = "owner-0";
/** Of the big owner's links: half have the first tag, and every hundredth the second. */
export const TAGS = { many: "t0", few: "rare" };
/** Small enough for progress to be told, large enough for a statement to cost nothing beside its rows. */
const CHUNK = 200_000;
const CONNECTIONS = 2;
const TABLES = ["link", "link_tag"];
/** Coprime to 57: n -> n * STRIDE mod 57^8 gives no code twice, and scatters those that follow one another. */
const STRIDE = 517_293_864_101;
/** While it is being made; one that was broken off is thrown away by the next run. */
const UNFINISHED = "unfinished";

export type Size = { links: number; owners: number };
type Tell = (text: string) => void;

/**
 * Finds the database of this size, or makes it.
 * @returns its URL, on a server that runs with the settings of a usual one
 */
export async function openSeeded(server: OwnServer, size: Size, tell: Tell): Promise<string> {
  const name = `links_${size.links}_${size.owners}`;
  const admin = await server.start("postgres");
  const found = await withSql(admin, 1, (sql) => sql`SELECT FROM pg_database WHERE datname = ${name}`);
  if (found.length === 0) await make(server, { ...size, name }, tell);
  else tell(`${name} is there already`);
  const url = await server.start(name);
  const migrated = await migrate(url, "main");
  if (migrated.length > 0) tell(`ran the migrations that it lacked: ${migrated.join(", ")}`);
  return url;
}

async function make(server: OwnServer, { name, ...size }: Size & { name: string }, tell: Tell): Promise<void> {
  const startedAt = performance.now();
  const telling: Tell = (text) => tell(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  const admin = await server.start("postgres", { seeding: true });
  await withSql(admin, 1, async (sql) => {
    await sql.unsafe(`DROP DATABASE IF EXISTS ${UNFINISHED} WITH (FORCE)`);
    await sql.unsafe(`CREATE DATABASE ${UNFINISHED}`);
  });
  const url = await server.start(UNFINISHED, { seeding: true });
  await migrate(url, "main");
  await withSql(url, CONNECTIONS, (sql) => fill(sql, size, telling));
  await withSql(admin, 1, (sql) => sql.unsafe(`ALTER DATABASE ${UNFINISHED} RENAME TO ${name}`));
  telling("writing it to the disk");
}

async function fill(sql: postgres.Sql, size: Size, tell: Tell): Promise<void> {
  const before = await describeSchema(sql);
  const definitions = await takeAwayIndexes(sql);
  await insertLinks(sql, size, tell);
  for (const { restore } of definitions) {
    tell(restore);
    await sql.unsafe(restore);
  }
  tell("revoking every fiftieth link");
  await sql`ANALYZE link`;
  await sql`
    SELECT count(revoked) FROM (SELECT owner, array_agg(code) AS codes FROM link
                                 WHERE hashtext(code) % 50 = 0 GROUP BY owner) AS chosen,
           LATERAL revoke_links(codes, owner, 'bench') AS revoked`;
  tell("VACUUM ANALYZE");
  await sql`VACUUM (ANALYZE) link, link_tag, link_change`;
  if ((await describeSchema(sql)) !== before) throw new Error("the seeding left another schema than the migrations");
}

/** Drops the keys and indexes of the tables that are filled. Returns what restores them, in the order to do it. */
async function takeAwayIndexes(sql: postgres.Sql): Promise<{ restore: string }[]> {
  const constraints = await sql<{ table: string; name: string; kind: string; restore: string }[]>`
    SELECT conrelid::regclass::text AS table, conname AS name, contype AS kind,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS restore
      FROM pg_constraint
     WHERE contype IN ('p', 'u', 'f') AND (conrelid = ANY (${TABLES}::regclass[]) OR confrelid = ANY (${TABLES}::regclass[]))
     ORDER BY contype = 'f'`;
  const indexes = await sql<{ name: string; restore: string }[]>`
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS restore FROM pg_index
     WHERE indrelid = ANY (${TABLES}::regclass[])
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))`;
  for (const { name } of indexes) await sql.unsafe(`DROP INDEX ${name}`);
  for (const { table, name } of [...constraints].reverse())
    await sql.unsafe(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  const keys = constraints.filter(({ kind }) => kind !== "f");
  return [...keys, ...indexes, ...constraints.filter(({ kind }) => kind === "f")];
}

async function insertLinks(sql: postgres.Sql, { links, owners }: Size, tell: Tell): Promise<void> {
  let next = 0;
  let done = 0;
  const worker = async () => {
    const own = await sql.reserve();
    // Passes triggers by, in this session alone.
    await own`SET session_replication_role = replica`;
    for (let from = next; from < links; from = next) {
      next = from + CHUNK;
      const to = Math.min(next, links);
      await own.unsafe(insertChunk(from, to - 1, owners));
      done += to - from;
      tell(`${done.toLocaleString("en")} links`);
    }
    own.release();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
}

/** Links in the order of their creation, as they come to be in a table; three of an instant, as in a batch. */
function insertChunk(from: number, to: number, owners: number): string {
  const digits = Array.from({ length: 8 }, (_, i) => `substr('${CODE_ALPHABET}', (x / ${57 ** i} % 57)::int + 1, 1)`);
  return `
    WITH made AS (
      INSERT INTO link (code, target, owner, kind, created_by, created_at, title, tags, expires_at)
      SELECT ${digits.join(" || ")}, 'https://www.example.com/articles/' || n || '?utm_source=newsletter&utm_medium=email',
             CASE WHEN n % 10 = 0 THEN '${BIG_OWNER}' ELSE 'owner-' || 1 + n * 7919 % ${owners - 1} END, 'RANDOM', 'bench',
             timestamptz '2024-01-01' + n / 3 * interval '18 seconds',
             CASE WHEN n % 3 = 0 THEN 'Article number ' || n END,
             CASE WHEN n % 1000 = 0 THEN '{${TAGS.many},${TAGS.few}}' WHEN n % 20 = 0 THEN '{${TAGS.many}}'
                  WHEN n % 7 = 0 THEN ARRAY['t' || 1 + n % 50] ELSE '{}' END::text[],
             CASE n % 40 WHEN 10 THEN timestamptz '2999-01-01' WHEN 23 THEN timestamptz '2024-02-01' END
        FROM generate_series(${from}::bigint, ${to}::bigint) AS n, LATERAL (SELECT n * ${STRIDE} % ${57 ** 8}) AS code (x)
      RETURNING owner, tags, created_at, code)
    INSERT INTO link_tag (owner, tag, created_at, code)
    SELECT DISTINCT owner, t.tag, created_at, code FROM made, unnest(tags) AS t (tag)`;
}

/** Some codes of links that are active and do not expire; scattered over the table, or as they lie in it. */
export function pickActive(url: string, count: number, { scattered = false } = {}): Promise<string[]> {
  return withSql(url, 1, async (sql) => {
    const rows = await sql<{ code: string }[]>`
      SELECT code FROM redirect_link WHERE state = 'ACTIVE' AND remaining_ms IS NULL
       ${scattered ? sql`ORDER BY hashtext(code)` : sql``} LIMIT ${count}`;
    return rows.map(({ code }) => code);
  });
}
