// The records of imports; import-batches.ts writes what becomes of their lines.
import type { Import, ImportError, ImportFormat, ImportMapping } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { type ImportRow, importColumns, importRowColumns, importState } from "./import-rows.ts";
import type { Author } from "./link-rows.ts";

/** What an import is called by: its key or its id. */
export type ImportName = { key: string } | { id: string };

export type NewImport = {
  id: string;
  key: string | null;
  mapping: ImportMapping;
  format: ImportFormat;
  dryRun: boolean;
  columns: readonly string[] | null;
  ignoredColumns: readonly string[];
};

/** A page of lines: those behind line `after`, `limit` at the most. */
export type LinePage = { id: string; owner: string; after: number; limit: number };

export type ImportStore = ReturnType<typeof createImportStore>;

/** Creates the store. Every function looks at the imports of one owner alone. */
export function createImportStore(db: Database) {
  async function find(owner: string, name: ImportName): Promise<ImportRow | undefined> {
    const [row] = await db.read(
      (sql) => sql<ImportRow[]>`
        SELECT ${importRowColumns(sql)} FROM import
         WHERE owner = ${owner} AND ${"key" in name ? sql`key = ${name.key}` : sql`id = ${name.id}::uuid`}`,
    );
    return row;
  }

  /** Enters a new import. False where the owner has one under this key already. */
  async function add(entry: NewImport, { owner, keyId }: Author): Promise<boolean> {
    const { id, key, mapping, format, dryRun, columns, ignoredColumns } = entry;
    const rows = await db.run(
      (sql) => sql`
        INSERT INTO import (id, owner, key, created_by, mapping, format, dry_run, columns, ignored_columns)
        VALUES (${id}, ${owner}, ${key}, ${keyId}, ${mapping}, ${format}, ${dryRun},
                ${columns === null ? null : [...columns]}::text[], ${[...ignoredColumns]}::text[])
        ON CONFLICT (owner, key) DO NOTHING RETURNING id`,
    );
    return rows.length > 0;
  }

  /** Begins an upload: who began one before may write nothing from now on. Called under the import's lock. */
  async function beginAttempt(id: string, owner: string): Promise<ImportRow> {
    const [row] = await db.run(
      (sql) => sql<ImportRow[]>`
        UPDATE import SET attempt = attempt + 1 WHERE id = ${id} AND owner = ${owner}
        RETURNING ${importRowColumns(sql)}`,
    );
    if (!row) throw new Error("an import has gone away");
    return row;
  }

  async function show(id: string, owner: string): Promise<Import | undefined> {
    const [row] = await db.read(
      (sql) => sql<Import[]>`
        SELECT ${importColumns(sql)}, ${importState(sql)} FROM import WHERE id = ${id}::uuid AND owner = ${owner}`,
    );
    return row;
  }

  /** The newest imports of an owner. */
  async function list(owner: string, limit: number): Promise<Import[]> {
    const rows = await db.read(
      (sql) => sql<Import[]>`
        SELECT ${importColumns(sql)}, ${importState(sql)} FROM import
         WHERE owner COLLATE "C" = ${owner} ORDER BY started_at DESC, id DESC LIMIT ${limit}`,
    );
    return [...rows];
  }

  async function errors({ id, owner, after, limit }: LinePage): Promise<ImportError[]> {
    const rows = await db.read(
      (sql) => sql<ImportError[]>`
        SELECT line, field, rule, code, detail FROM import_error
         WHERE import_id = (SELECT i.id FROM import i WHERE i.id = ${id}::uuid AND i.owner = ${owner})
           AND line > ${after} ORDER BY line LIMIT ${limit}`,
    );
    return [...rows];
  }

  /** Which lines became which links. */
  async function links({ id, owner, after, limit }: LinePage): Promise<{ line: number; code: string }[]> {
    const rows = await db.read(
      (sql) => sql<{ line: number; code: string }[]>`
        SELECT import_line AS line, code FROM link
         WHERE import_id = ${id}::uuid AND owner = ${owner} AND import_line > ${after}
         ORDER BY import_line LIMIT ${limit}`,
    );
    return [...rows];
  }

  return { find, add, beginAttempt, show, list, errors, links };
}
