// Rows that did not come through the write service, from a real process on a real database.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Database } from "@linkfence/db";
import {
  createHttpClient,
  createTestDatabase,
  type RunningService,
  startService,
  type TestDatabase,
  WITHOUT_STATISTICS,
  waitUntilReady,
} from "@linkfence/testkit";
import { createLinkReader } from "./links.ts";

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

test("a link is looked up by its key, however many there are", async () => {
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT 'many' || n, 'https://example.com/', 'ann', 'ALIAS', 'k' FROM generate_series(1, 2000) AS n`;
  await database.sql`ANALYZE link`;
  const explain = async (text: string, values: unknown[]) =>
    JSON.stringify(await database.sql.unsafe(`EXPLAIN ${text}`, values as string[]));
  let plan: Promise<string> | undefined;
  const read = (statement: (sql: unknown) => unknown) => {
    statement((texts: readonly string[], ...values: unknown[]) => {
      plan = explain(
        texts.reduce((text, next, index) => `${text}$${index}${next}`),
        values,
      );
    });
    return Promise.reject(new Error("it is only explained"));
  };
  await expect(createLinkReader({ read } as unknown as Database)(["many7", "many8"])).rejects.toThrow("only explained");
  expect(await plan).toContain("Index Scan using link_pkey");
  expect(await plan).not.toContain("Seq Scan");
  expect(await explain("SELECT FROM link WHERE code || '' = $1", ["many7"])).toContain("Seq Scan");
});
