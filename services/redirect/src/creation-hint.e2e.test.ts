// What a redirect process is told of a link that has just come into being.
import { expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  readMetric,
  startService,
  until,
  WITHOUT_STATISTICS,
  waitUntilReady,
} from "@linkfence/testkit";

const NEGATIVE_MS = 10_000;

test("a code that was asked for before it existed leads to its target as soon as the hint of its creation arrives; control: without one it stays unknown", async () => {
  const database = await createTestDatabase("main");
  const http = createHttpClient();
  // Nobody stores clicks here, which is nothing to a redirect.
  const settings = { DATABASE_URL: database.url, NEGATIVE_TTL_MS: String(NEGATIVE_MS), ...WITHOUT_STATISTICS };
  const redirect = await startService("redirect", settings);
  try {
    await waitUntilReady(redirect);
    await until(async () => (await readMetric(redirect, "linkfence_listening")) === 1);
    const status = async () => (await http.send(redirect.url, "/later")).status;
    const askedAt = performance.now();
    expect(await status()).toBe(404);
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
      VALUES ('later', 'https://example.com/', 'ann', 'ALIAS', 'k')`;
    expect(await status()).toBe(404);
    await database.sql`SELECT pg_notify('link_created', '')`;
    await until(async () => (await status()) === 302);
    expect(performance.now() - askedAt).toBeLessThan(NEGATIVE_MS);
  } finally {
    http.close();
    await redirect.stop();
    await database.drop();
  }
});
