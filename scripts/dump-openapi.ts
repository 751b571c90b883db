// Writes the committed OpenAPI document anew. A test compares it with what the routes say.
import { writeFile } from "node:fs/promises";
import { describedRoutes } from "../services/write/src/http/api-routes.ts";
import { describeApi, printDocument } from "../services/write/src/openapi/document.ts";

const HELP = `Writes services/write/openapi.json anew, from the routes of the admin API.

Usage: pnpm dump-openapi
`;
const EX_USAGE = 64;

const [argument] = process.argv.slice(2);
if (argument === undefined) {
  const file = new URL("../services/write/openapi.json", import.meta.url);
  await writeFile(file, printDocument(describeApi(describedRoutes())));
} else if (argument === "--help") {
  process.stdout.write(HELP);
} else {
  process.stderr.write(`unknown argument ${argument}\n\n${HELP}`);
  process.exitCode = EX_USAGE;
}
