import { relative } from "node:path";
import type { AdminKey } from "./admin-key.ts";
import type { StartPlan } from "./settings.ts";

/** What is printed once everything is ready: where things are, the key when it is new, and the commands to paste. */
export function banner(plan: StartPlan, key: AdminKey): string {
  const file = displayPath(key.file);
  const auth = `-H "Authorization: Bearer $(cat ${file})"`;
  const redirects = plan.services.filter(({ name }) => name.startsWith("redirect"));
  const redirectUrl = `http://127.0.0.1:${redirects[0]?.port}`;
  return `
linkfence is ready.

  redirects   ${redirects.map(({ port }) => `http://127.0.0.1:${port}`).join("  ")}
  admin API   ${plan.adminUrl}
  data        ${displayPath(plan.dataDir)}
  admin key   ${key.fresh === null ? `in ${file}` : `${key.fresh}   (shown this once, kept in ${file})`}
${key.note === null ? "" : `\n  ${key.note}\n`}
Create a link, follow it, count it:

  CODE=$(curl -sS ${plan.adminUrl}/v1/links ${auth} \\
    -H "Content-Type: application/json" -d '{"target":"https://example.com/"}' \\
    | node -p 'JSON.parse(require("fs").readFileSync(0)).code')
  curl -sSi ${redirectUrl}/$CODE
  sleep 1; curl -sS ${plan.adminUrl}/v1/links/$CODE/stats ${auth}

Take it back:

  curl -sS -X DELETE ${plan.adminUrl}/v1/links/$CODE ${auth}

Ctrl-C stops all of it.
`;
}

function displayPath(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") ? path : near;
}
