import type { TestDatabase } from "@linkfence/testkit";

/** Takes a rule out of a function of the schema, in this database alone. Throws when the function has no such text. */
export async function takeOut({ sql }: TestDatabase, name: string, text: string, instead = ""): Promise<void> {
  const [row] = await sql<{ definition: string }[]>`SELECT pg_get_functiondef(${name}::regproc) AS definition`;
  const definition = row?.definition ?? "";
  if (!definition.includes(text)) throw new Error(`${name} does not say ${text}`);
  await sql.unsafe(definition.replace(text, instead));
}
