import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { createTestDatabase } from "@linkfence/testkit";
import { describeSchema } from "./schema-dump.ts";

test.each(["main", "stats"] as const)("the committed schema of %s is what the migrations make", async (name) => {
  const database = await createTestDatabase(name);
  const committed = await readFile(new URL(`../packages/db/schema/${name}.txt`, import.meta.url), "utf8");
  expect(await describeSchema(database.sql)).toBe(committed);
  await database.drop();
});

test("a change of the schema changes its description", async () => {
  const database = await createTestDatabase("main");
  const before = await describeSchema(database.sql);
  await database.sql`ALTER TABLE link ADD COLUMN extra int`;
  expect(await describeSchema(database.sql)).not.toBe(before);
  await database.drop();
});
