// Writes the committed descriptions of both schemas anew. The tests compare them with what the migrations make.
import { writeFile } from "node:fs/promises";
import { createTestDatabase } from "@linkfence/testkit";
import { startTestServer } from "../tests/setup/test-server.mjs";
import { runCommand, UsageError } from "./command.ts";
import { describeSchema } from "./schema-dump.ts";

const HELP = `Writes packages/db/schema/*.txt anew, from a database that the migrations made.

Usage: pnpm dump-schema

Exit status: 0 written, 64 wrong arguments.
`;

async function dump(): Promise<void> {
  const server = await startTestServer({});
  try {
    for (const name of ["main", "stats"] as const) {
      const database = await createTestDatabase(name);
      const file = new URL(`../packages/db/schema/${name}.txt`, import.meta.url);
      await writeFile(file, await describeSchema(database.sql));
      await database.drop();
    }
  } finally {
    await server.stop();
  }
}

await runCommand({
  help: HELP,
  options: {},
  async run(_values, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    await dump();
    return 0;
  },
});
