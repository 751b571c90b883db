// What a visitor is told, by status and headers, about links that the API made.
import {
  createApiClient,
  createHttpClient,
  type HttpAnswer,
  type HttpClient,
  type Stack,
  startStack,
  waitFor,
} from "@linkfence/testkit";
import type { EvidenceCase } from "./report.ts";

const TARGET = "https://example.com/?abc#123";
const REFUSED_METHODS = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
/** Cold, and from memory. */
const VISITS = 2;

const EXPECTED: Readonly<Record<string, string>> = {
  active: `302 location: ${TARGET}, cache-control: no-store`,
  revoked: "410 cache-control: no-store",
  expired: "410 cache-control: no-store",
  unknown: "404 cache-control: no-store",
};
const NOT_ALLOWED = "405 allow: GET, HEAD, cache-control: no-store";
const TOLD_HEADERS = ["location", "allow", "cache-control"];

export const r1: EvidenceCase = {
  id: "R1",
  shows:
    "an active link answers 302, an unknown one 404, a revoked or expired one 410, any other method 405; no cache may keep any of it",
  async run(report) {
    const stack = await startStack();
    const http = createHttpClient();
    const url = stack.redirects[0]?.url ?? "";
    const ask = async (method: string, code: string) => readTold(await http.send(url, `/${code}`, { method }));
    try {
      await createLinks(stack, http);
      await waitFor("the expiry", async () => (await ask("HEAD", "expired")) === EXPECTED.expired);
      for (const [code, expected] of Object.entries(EXPECTED)) {
        for (const method of ["GET", "HEAD"]) {
          for (let visit = 1; visit <= VISITS; visit += 1)
            report.check(`${method} of the link "${code}"`, await ask(method, code), expected);
        }
      }
      for (const method of REFUSED_METHODS) {
        const told = await Promise.all(Object.keys(EXPECTED).map((code) => ask(method, code)));
        report.check(
          `${method} of each of them`,
          told,
          told.map(() => NOT_ALLOWED),
        );
      }
    } finally {
      http.close();
      await stack.stop();
    }
  },
};

async function createLinks(stack: Stack, http: HttpClient): Promise<void> {
  const api = createApiClient(http, stack.write.url, stack.adminKey);
  const links = [
    { target: TARGET, alias: "active" },
    { target: TARGET, alias: "revoked" },
    { target: TARGET, alias: "expired", expiresInSeconds: 1 },
  ];
  await api("POST", "/v1/links:batch", { links });
  await api("DELETE", "/v1/links/revoked");
}

/** The status and the headers that matter, in one line. */
function readTold({ status, headers }: HttpAnswer): string {
  const told = TOLD_HEADERS.filter((name) => headers[name] !== undefined);
  return `${status} ${told.map((name) => `${name}: ${headers[name]}`).join(", ")}`;
}
