// The limits on calls of a real service: what is counted, whose address is believed, and what refusals cost.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type HttpAnswer, readMetric } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

const LIMITS = { RATE_LIMIT_KEY_PER_MINUTE: "4", RATE_LIMIT_ADDRESS_PER_MINUTE: "3" };

/** Behind a proxy on this machine, which tells whose call it is; without one; and without limits. */
let proxied: ApiWorld;
let plain: ApiWorld;
let free: ApiWorld;
beforeAll(async () => {
  [proxied, plain, free] = await Promise.all([
    startApiWorld({ ...LIMITS, TRUST_PROXY: "127.0.0.1, 10.0.0.0/8" }),
    startApiWorld(LIMITS),
    startApiWorld({ RATE_LIMIT_KEY_PER_MINUTE: "0", RATE_LIMIT_ADDRESS_PER_MINUTE: "0" }),
  ]);
});
afterAll(() => Promise.all([proxied, plain, free].map((world) => world.stop())));

type Asking = { key?: string; from?: string; path?: string };
function ask(world: ApiWorld, { key, from, path = "/v1/links" }: Asking): Promise<HttpAnswer> {
  const headers: Record<string, string> = {};
  if (key !== undefined) headers.Authorization = `Bearer ${key}`;
  if (from !== undefined) headers["X-Forwarded-For"] = from;
  return world.raw(path, { headers });
}

async function statuses(world: ApiWorld, times: number, asking: Asking): Promise<number[]> {
  const all: number[] = [];
  for (let n = 0; n < times; n += 1) all.push((await ask(world, asking)).status);
  return all;
}

describe("a key beyond its limit", () => {
  test("is told so as documented, by a problem and how long to wait, from every address, and others go on", async () => {
    const [ann, bob] = [await proxied.addKey("ann", ["links:read"]), await proxied.addKey("bob", ["links:read"])];
    const first = await ask(proxied, { key: ann, from: "203.0.113.1" });
    expect(first.headers["ratelimit-policy"]).toMatch(/^"key"; q=4; w=60; pk=:.+:$/);
    expect(first.headers.ratelimit).toMatch(/^"key"; r=3; t=(?:60|59)$/);
    expect(await statuses(proxied, 3, { key: ann, from: "203.0.113.2" })).toEqual([200, 200, 200]);
    const refused = await ask(proxied, { key: ann, from: "203.0.113.3" });
    expect(refused.status).toBe(429);
    expect(refused.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(refused.headers["cache-control"]).toBe("no-store");
    const problem = JSON.parse(refused.body) as Record<string, unknown>;
    expect(problem).toMatchObject({ code: "rate-limited", status: 429 });
    expect(problem.instance).toBe(`urn:linkfence:request:${refused.headers["x-request-id"]}`);
    const [, left = ""] = /^"key"; r=0; t=(\d+)$/.exec(String(refused.headers.ratelimit)) ?? [];
    expect(refused.headers["retry-after"]).toBe(left);
    expect(Number(left)).toBeGreaterThan(0);
    expect(Number(left)).toBeLessThanOrEqual(60);
    expect((await ask(proxied, { key: bob, from: "203.0.113.3" })).status).toBe(200);
    expect(await readMetric(proxied.write, 'linkfence_rate_limited_total{limit="key"}')).toBe(1);
  });
});

describe("an address without a valid key", () => {
  test("may fail so often and no more, neighbours whose keys are valid go on, and so do all other addresses", async () => {
    const from = "198.51.100.1";
    const key = await proxied.addKey("eve", ["links:read"]);
    expect(await statuses(proxied, 1, { key, from })).toEqual([200]);
    const wrong = `${key.slice(0, -4)}${key.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
    expect(await statuses(proxied, 5, { key: wrong, from })).toEqual([401, 401, 401, 429, 429]);
    expect(await statuses(proxied, 2, { key, from })).toEqual([200, 200]);
    expect(await statuses(proxied, 1, { from: "198.51.100.2" })).toEqual([401]);
    // What needs no key is for everybody.
    expect((await ask(proxied, { from, path: "/openapi.json" })).status).toBe(200);
  });

  test.each([
    ["IPv4 written as IPv6", ["198.51.100.9", "::ffff:198.51.100.9", "::FFFF:c633:6409"], [401, 401, 401, 429]],
    ["one IPv6 /64", ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:DB8:0:1::3"], [401, 401, 401, 429]],
    ["two IPv6 /64", ["2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:0:2::2"], [401, 401, 401, 401]],
    ["a chain, of which the last that is no proxy counts", ["1.1.1.1, 198.51.100.20, 10.1.2.3"], [401, 401, 401, 429]],
    [
      "chains that begin otherwise",
      ["1.1.1.1, 198.51.100.21", "2.2.2.2, 198.51.100.21", "198.51.100.21, 10.9.9.9"],
      [401, 401, 401, 429],
    ],
  ])("is told apart by what the trusted proxy says: %s", async (_what, froms, expected) => {
    const got: number[] = [];
    for (let n = 0; n < 4; n += 1) got.push((await ask(proxied, { from: froms[n % froms.length] ?? "" })).status);
    expect(got).toEqual(expected);
  });

  test("cannot escape by an X-Forwarded-For of its own, where it is not believed", async () => {
    const escapes = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => ask(plain, { from: `192.0.2.${n}` })));
    const got = escapes.map(({ status }) => status);
    // Other tests of this file, in any order, may have used up some of the same limit.
    expect(got.filter((status) => status === 401).length).toBeLessThanOrEqual(3);
    expect(got.filter((status) => status === 429).length).toBeGreaterThanOrEqual(3);
  });

  test("escapes where anybody is believed (control)", async () => {
    const escapes = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => ask(proxied, { from: `192.0.2.${n}` })));
    expect(escapes.map(({ status }) => status)).toEqual(Array(6).fill(401));
  });

  test("is refused before its body is sent, and is not asked to send it", async () => {
    const { hostname, port } = new URL(plain.write.url);
    const refusals: string[] = [];
    // The first may still be a 401: other tests of this file come in any order.
    for (let n = 0; n < 5; n += 1) {
      const socket = connect(Number(port), hostname);
      socket.write(
        "POST /v1/imports HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n",
      );
      const [chunk] = (await once(socket, "data")) as [Buffer];
      refusals.push(String(chunk).slice(0, 12));
      socket.destroy();
    }
    expect(refusals.at(-1)).toBe("HTTP/1.1 429");
    for (const refusal of refusals) expect(refusal).toMatch(/^HTTP\/1\.1 4(?:01|29)$/);
  });
});

describe("the memory of the limits", () => {
  test("is told by metrics, and holds nobody who only came with a valid key among the addresses", async () => {
    const of = (metric: string) => readMetric(proxied.write, `linkfence_${metric}`);
    const all = () =>
      Promise.all(['rate_limit_clients{limit="key"}', 'rate_limit_clients{limit="address"}', "known_keys"].map(of));
    const [keys = 0, addresses = 0, known = 0] = await all();
    const key = await proxied.addKey("cy", ["links:read"]);
    expect(await statuses(proxied, 3, { key, from: "198.51.100.77" })).toEqual([200, 200, 200]);
    expect(await all()).toEqual([keys + 1, addresses, known + 1]);
    expect(await statuses(proxied, 1, { from: "198.51.100.78" })).toEqual([401]);
    expect(await all()).toEqual([keys + 1, addresses + 1, known + 1]);
    expect(await of('rate_limit_evictions_total{limit="address"}')).toBe(0);
  });
});

test("a limit of 0 is none, and no field speaks of one", async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, () => ask(free, {})));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  const good = await Promise.all(Array.from({ length: 30 }, () => ask(free, { key: free.adminKey })));
  expect(new Set(good.map(({ status }) => status))).toEqual(new Set([200]));
  for (const { headers } of [...answers, ...good])
    expect([headers.ratelimit, headers["ratelimit-policy"]]).toEqual([undefined, undefined]);
});
