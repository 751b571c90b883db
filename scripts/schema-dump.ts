// A text of everything a database's own schema holds, in a fixed order, so that two schemas can be compared by eye and
// by a diff. Written from the catalogues (PostgreSQL manual, chapter 53), since the embedded server brings no pg_dump.
import type postgres from "postgres";

/** The migrations' own bookkeeping is no part of the product's schema. */
const LEFT_OUT = "schema_migration";

const TABLES = `
  SELECT c.oid::regclass::text AS name, c.relkind::text AS kind, pg_get_partkeydef(c.oid) AS partition_key,
         pg_get_expr(c.relpartbound, c.oid) AS bound,
         (SELECT string_agg('  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                   || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
                   || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''), E',\\n' ORDER BY a.attnum)
            FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND c.relname <> '${LEFT_OUT}' ORDER BY 1`;
const OTHERS = `
  SELECT 'constraint' AS kind, conrelid::regclass || ' ' || conname AS name, pg_get_constraintdef(oid) AS text
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> '${LEFT_OUT}'
  UNION ALL
  SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '${LEFT_OUT}'
  UNION ALL
  SELECT 'sequence', sequencename, 'increment ' || increment_by || ', cache ' || cache_size
    FROM pg_sequences WHERE schemaname = 'public' AND sequencename NOT LIKE '${LEFT_OUT}%'
  UNION ALL
  SELECT 'trigger', t.tgrelid::regclass || ' ' || tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t
   WHERE NOT t.tgisinternal
  UNION ALL
  SELECT 'view', viewname, E'\\n' || definition FROM pg_views WHERE schemaname = 'public'
  UNION ALL
  SELECT 'function', p.oid::regprocedure::text, E'\\n' || pg_get_functiondef(p.oid) FROM pg_proc p
   WHERE p.pronamespace = 'public'::regnamespace
   ORDER BY 1, 2`;

type Table = { name: string; kind: string; partition_key: string | null; bound: string | null; columns: string };

/** Describes the schema of the database that `sql` is connected to. */
export async function describeSchema(sql: postgres.Sql): Promise<string> {
  const tables = await sql.unsafe<Table[]>(TABLES);
  const others = await sql.unsafe<{ kind: string; name: string; text: string }[]>(OTHERS);
  const parts = [
    ...tables.map(({ name, columns, partition_key, bound }) => {
      const key = partition_key === null ? "" : ` PARTITION BY ${partition_key}`;
      const range = bound === null ? "" : ` ${bound}`;
      return `table ${name}${key}${range}\n${columns}`;
    }),
    ...others.map(({ kind, name, text }) => `${kind} ${name}: ${text.trimEnd()}`),
  ];
  return `-- Generated from the migrations by \`pnpm dump-schema\`; do not edit.\n\n${parts.join("\n\n")}\n`;
}
