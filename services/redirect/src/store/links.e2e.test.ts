// Rows that did not come through the write service, from a real process on a real database.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type RunningService,
  startService,
  type TestDatabase,
  WITHOUT_STATISTICS,
  waitUntilReady,
} from "@linkfence/testkit";

let database: TestDatabase;
let redirect: RunningService;
const http = createHttpClient();
let codes = 0;

beforeAll(async () => {
  database = await createTestDatabase("main");
  redirect = await startService("redirect", { DATABASE_URL: database.url, ...WITHOUT_STATISTICS });
  await waitUntilReady(redirect);
});
afterAll(async () => {
  http.close();
  await redirect.stop();
  await database.drop();
});

const get = (path: string) => http.send(redirect.url, path);

async function insertLink(target: string): Promise<string> {
  const code = `link${++codes}`;
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES (${code}, ${target}, 'ann', 'ALIAS', 'k')`;
  return code;
}

describe("a row that did not come through the write service", () => {
  test.each(["https://example.com/\u00e9", "https://example.com/\r\nSet-Cookie: a=b", "https://example.com/\u{1f600}"])(
    "and whose target no header can carry is answered 503, and the next request as ever (%#)",
    async (target) => {
      const { status, headers } = await get(`/${await insertLink(target)}`);
      expect([status, headers["set-cookie"], headers["cache-control"]]).toEqual([503, undefined, "no-store"]);
      expect((await get(`/${await insertLink("https://example.com/")}`)).status).toBe(302);
    },
  );

  test("and whose target a header can carry is sent byte for byte", async () => {
    const target = `https://example.com/"><img src=x onerror=alert(1)>`;
    const code = await insertLink(target);
    expect((await get(`/${code}`)).headers.location).toBe(target);
    expect((await get(`/${code}+`)).body).toBe(`${target}\n`);
  });
});
