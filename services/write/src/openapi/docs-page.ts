// The page that shows the document to people: Swagger UI, out of its own package. The page loads what stands here and
// nothing else, runs no script that stands in it, and may talk to this service alone.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** Paths are relative to `/docs`, so that the page also works behind a proxy that puts a prefix before it. */
export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>linkfence admin API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<noscript>This page needs scripts. The description itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<div id="api"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/page.js"></script>
</body>
</html>
`;

/** Its pictures are data URLs within its style sheet; styles that scripts set one by one need no permission. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** No check by a service of its maker, no address of a document taken from the page's URL, no key kept. */
const SCRIPT = `window.ui = SwaggerUIBundle({
  dom_id: "#api",
  url: "openapi.json",
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
});
`;

type PageFile = { type: string; text: string };

const require = createRequire(import.meta.url);
const packageFiles: ReadonlyMap<string, { type: string; path: string }> = new Map([
  ["swagger-ui.css", { type: "text/css", path: require.resolve("swagger-ui-dist/swagger-ui.css") }],
  ["swagger-ui-bundle.js", { type: "text/javascript", path: require.resolve("swagger-ui-dist/swagger-ui-bundle.js") }],
]);
/** Read once; together they have 2 MB. */
const kept = new Map<string, PageFile>([["page.js", { type: "text/javascript", text: SCRIPT }]]);

/** Names of the files that the page is made of. */
export const PAGE_FILES = [...packageFiles.keys(), ...kept.keys()];

/** Reads one of the page's files; undefined where it has none of that name. */
export async function readPageFile(name: string): Promise<PageFile | undefined> {
  const source = packageFiles.get(name);
  const found = kept.get(name);
  if (found !== undefined || source === undefined) return found;
  const file = { type: source.type, text: await readFile(source.path, "utf8") };
  kept.set(name, file);
  return file;
}
