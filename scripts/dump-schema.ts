// Writes the committed descriptions of both schemas anew. The tests compare them with what the migrations make.
import { writeFile } from "node:fs/promises";
import { createTestDatabase } from "@linkfence/testkit";
import { startTestServer } from "../tests/setup/test-server.mjs";
import { allowOnlyHelp } from "./no-arguments.ts";
import { describeSchema } from "./schema-dump.ts";

allowOnlyHelp("dump-schema", "Writes packages/db/schema/*.txt anew from the migrations.");
const server = await startTestServer({});
try {
  for (const name of ["main", "stats"] as const) {
    const database = await createTestDatabase(name);
    await writeFile(new URL(`../packages/db/schema/${name}.txt`, import.meta.url), await describeSchema(database.sql));
    await database.drop();
  }
} finally {
  await server.stop();
}
