// Writes the committed OpenAPI document anew. A test compares it with what the routes say.
import { writeFile } from "node:fs/promises";
import { describedRoutes } from "../services/write/src/http/api-routes.ts";
import { describeApi, printDocument } from "../services/write/src/openapi/document.ts";
import { runCommand, UsageError } from "./command.ts";

const HELP = `Writes services/write/openapi.json anew, from the routes of the admin API.

Usage: pnpm dump-openapi

Exit status: 0 written, 64 wrong arguments.
`;

await runCommand({
  help: HELP,
  options: {},
  async run(_values, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    const file = new URL("../services/write/openapi.json", import.meta.url);
    await writeFile(file, printDocument(describeApi(describedRoutes())));
    return 0;
  },
});
