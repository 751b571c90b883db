// Every database connection is ended by an administrator, when nothing happens and under load: nobody exits, nothing is
// lost, and the feed goes on from where it was.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createApiClient,
  createHttpClient,
  keepOn,
  readMetric,
  type Stack,
  startStack,
  terminateConnections,
  until,
} from "@linkfence/testkit";

let stack: Stack;
const http = createHttpClient();
const api = <T>(method: string, path: string, body?: unknown) =>
  createApiClient(http, stack.write.url, stack.adminKey)<T>(method, path, body);
const follow = async (code: string, redirect = 0) =>
  (await http.send(stack.redirects[redirect]?.url ?? "", `/${code}`)).status;

beforeAll(async () => {
  stack = await startStack({ redirects: 2, redirectEnv: { CACHE_TTL_MS: "5000" } });
});
afterAll(async () => {
  http.close();
  await stack.stop();
});

/** Ends the connections of every service to both databases; the test's own survive in their pool, which reconnects. */
async function terminateAll(): Promise<number> {
  return (await terminateConnections(stack.main)) + (await terminateConnections(stack.stats));
}

/** Tries until it works: the first call after a lost connection may say 503, and must not hang or lie. */
async function insist<T>(call: () => Promise<{ status: number; json: T }>): Promise<T> {
  for (;;) {
    const { status, json } = await call();
    if (status < 400) return json;
    expect(status).toBe(503);
  }
}

async function create(): Promise<string> {
  const link = await insist(() => api<{ code: string }>("POST", "/v1/links", { target: "https://example.com/" }));
  return link.code;
}

const flushes = async (redirect: number) => {
  const service = stack.redirects[redirect];
  const page = await (await fetch(`${service?.opsUrl}/metrics`)).text();
  return page.split("\n").filter((line) => line.startsWith("linkfence_flushes_total{"));
};

describe("when every connection is ended", () => {
  test("while idle, the next revocation takes effect on both redirects, and nothing had to be forgotten", async () => {
    const [kept, revoked] = [await create(), await create()];
    for (const redirect of [0, 1]) for (const code of [kept, revoked]) expect(await follow(code, redirect)).toBe(302);
    expect(await terminateAll()).toBeGreaterThan(4);
    await insist(() => api("DELETE", `/v1/links/${revoked}?wait=committed`));
    for (const redirect of [0, 1]) {
      await until(async () => (await follow(revoked, redirect)) === 410);
      expect(await follow(kept, redirect)).toBe(302);
      expect(await flushes(redirect)).toEqual(['linkfence_flushes_total{cause="started"} 1']);
    }
  });

  test("under load, again and again: no exit, no wrong answer, each revocation takes effect, and every click is counted", async () => {
    const stop = new AbortController();
    const [warm, cold] = [await create(), "unknown-code"];
    const seen = { warm: new Map<number, number>(), cold: new Map<number, number>() };
    const note = (counts: Map<number, number>, status: number) => counts.set(status, (counts.get(status) ?? 0) + 1);
    const load = [0, 1].map((redirect) =>
      keepOn(stop.signal, async () => {
        note(seen.warm, await follow(warm, redirect));
        note(seen.cold, await follow(cold, redirect));
      }),
    );
    for (let round = 0; round < 10; round += 1) {
      const code = await create();
      for (const redirect of [0, 1]) await until(async () => (await follow(code, redirect)) === 302);
      await terminateAll();
      await insist(() => api("DELETE", `/v1/links/${code}?wait=committed`));
      await terminateAll();
      for (const redirect of [0, 1]) await until(async () => (await follow(code, redirect)) === 410);
    }
    stop.abort();
    await Promise.all(load);
    expect([...seen.warm.keys()]).toEqual([302]);
    expect([...seen.cold.keys()].filter((status) => status !== 404 && status !== 503)).toEqual([]);

    let stored = 0;
    for (const redirect of stack.redirects) {
      await until(async () => (await readMetric(redirect, "linkfence_clicks_in_flight")) === 0);
      expect(await readMetric(redirect, 'linkfence_clicks_dropped_total{reason="ring-full"}')).toBe(0);
      stored += await readMetric(redirect, "linkfence_clicks_accepted_total");
    }
    const [row] = await stack.stats.sql`SELECT count(*)::int AS rows, count(DISTINCT click_id)::int AS ids FROM click`;
    expect(row).toEqual({ rows: stored, ids: stored });
    for (const service of [stack.write, stack.ingest, ...stack.redirects])
      expect(service.output()).not.toContain("fatal error");
  });
});
