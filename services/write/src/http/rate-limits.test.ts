// Both limits and the order of their checks, on Express over loopback, with keys in memory and a clock that goes when told.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { createErrorHandler } from "@linkfence/service-shell";
import express from "express";
import { createCounts } from "../counts.ts";
import type { ActiveKey } from "../store/api-keys.ts";
import { mintKey } from "../store/key-secret.ts";
import { createAuthenticator } from "./auth.ts";
import { createGuard } from "./guard.ts";
import { createRateLimits, networkOf } from "./rate-limits.ts";

const quiet = { error() {}, warn() {}, info() {}, debug() {} };
let stop = () => {};
afterEach(() => stop());

function createKey(scopes = ["admin"]) {
  const { id, text, secretHash } = mintKey();
  return { text, stored: { id, owner: "ann", scopes, secretHash, useIsDue: false } satisfies ActiveKey };
}

/** A service with one call that needs `links:read`; every request comes from the address that it names itself. */
async function startGuarded({ keyPerMinute = 0, addressPerMinute = 0, keys = [] as ActiveKey[] }) {
  const clock = { ms: 1000 };
  const counts = createCounts();
  const byId = new Map(keys.map((key) => [key.id, key]));
  let lookups = 0;
  const findActive = async (id: string) => {
    lookups += 1;
    return byId.get(id);
  };
  const limits = createRateLimits({ keyPerMinute, addressPerMinute, counts: counts.rateLimited, now: () => clock.ms });
  const admit = createGuard(
    createAuthenticator({ keys: { findActive }, onFailure: () => {}, onUse: () => {} }),
    limits,
  );
  const app = express().set("trust proxy", ["loopback"]);
  app.get("/", async (request, response) => {
    await admit(request, response, "links:read");
    response.end();
  });
  app.use(createErrorHandler(quiet, () => undefined));
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stop = () => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as AddressInfo;
  const ask = async (key: string | undefined, address = "192.0.2.1") => {
    const headers: Record<string, string> = { "X-Forwarded-For": address };
    if (key !== undefined) headers.Authorization = `Bearer ${key}`;
    return fetch(`http://127.0.0.1:${port}/`, { headers });
  };
  const statuses = async (times: number, key: string | undefined, address?: string) => {
    const all: number[] = [];
    for (let n = 0; n < times; n += 1) all.push((await ask(key, address)).status);
    return all;
  };
  return { ask, statuses, clock, counts, limits, byId, lookups: () => lookups };
}

const fieldsOf = ({ headers }: Response) => ["ratelimit-policy", "ratelimit", "retry-after"].map((n) => headers.get(n));

describe("a key", () => {
  test("may call as often as its limit says, hears of it each time, and goes on when the window has passed", async () => {
    const { text, stored } = createKey();
    const { ask, clock, counts } = await startGuarded({ keyPerMinute: 2, keys: [stored] });
    const first = await ask(text);
    expect([first.status, ...fieldsOf(first)]).toEqual([
      200,
      expect.stringMatching(/^"key"; q=2; w=60; pk=:[A-Za-z0-9+/=]+:$/),
      expect.stringMatching(/^"key"; r=1; t=60$/),
      null,
    ]);
    clock.ms += 20_000;
    expect(fieldsOf(await ask(text))[1]).toBe('"key"; r=0; t=40');
    const refused = await ask(text);
    expect([refused.status, ...fieldsOf(refused).slice(1)]).toEqual([429, '"key"; r=0; t=40', "40"]);
    expect(refused.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
    expect(await refused.json()).toMatchObject({ code: "rate-limited", status: 429, detail: expect.any(String) });
    expect(counts.rateLimited).toEqual({ key: 1, address: 0 });
    clock.ms += 40_001;
    expect((await ask(text)).status).toBe(200);
  });

  test("takes nothing from another one, and its limit holds from whatever address", async () => {
    const [ann, bob] = [createKey(), createKey()];
    const { statuses } = await startGuarded({ keyPerMinute: 2, keys: [ann.stored, bob.stored] });
    expect(await statuses(3, ann.text)).toEqual([200, 200, 429]);
    expect(await statuses(1, ann.text, "192.0.2.99")).toEqual([429]);
    expect(await statuses(2, bob.text)).toEqual([200, 200]);
  });

  test("that does not allow the call pays for it all the same", async () => {
    const { text, stored } = createKey(["stats:read"]);
    const { statuses } = await startGuarded({ keyPerMinute: 2, keys: [stored] });
    expect(await statuses(3, text)).toEqual([403, 403, 429]);
  });

  test("has no limit where it is 0, and no field says otherwise", async () => {
    const { text, stored } = createKey();
    const { ask, statuses } = await startGuarded({ keys: [stored] });
    expect(new Set(await statuses(50, text))).toEqual(new Set([200]));
    expect(fieldsOf(await ask(text))).toEqual([null, null, null]);
  });
});

describe("an address without a valid key", () => {
  test.each([
    ["no key", undefined],
    ["nonsense", "nonsense"],
    ["unknown keys", createKey().text],
  ])("that sends %s is refused beyond its limit, and hears of it each time", async (_what, key) => {
    const { ask, statuses, counts } = await startGuarded({ addressPerMinute: 3 });
    const first = await ask(key);
    expect([first.status, ...fieldsOf(first)]).toEqual([
      401,
      expect.stringMatching(/^"address"; q=3; w=60; pk=:[A-Za-z0-9+/=]+:$/),
      '"address"; r=2; t=60',
      null,
    ]);
    expect(await statuses(3, key)).toEqual([401, 401, 429]);
    expect(fieldsOf(await ask(key)).slice(1)).toEqual(['"address"; r=0; t=60', "60"]);
    expect(counts.rateLimited).toEqual({ key: 0, address: 2 });
  });

  test("costs no look-up beyond its limit but one a tenth of a second, where without a limit each guess costs one (control)", async () => {
    for (const [addressPerMinute, lookups] of [
      [3, 4],
      [0, 20],
    ] as const) {
      const guarded = await startGuarded({ addressPerMinute });
      for (let n = 0; n < 20; n += 1) await guarded.ask(createKey().text);
      expect(guarded.lookups()).toBe(lookups);
      stop();
    }
  });

  test("does not keep its neighbours out: a key that was valid goes on from there, and one that is new gets its turn", async () => {
    const [known, fresh] = [createKey(), createKey()];
    const { statuses, clock } = await startGuarded({ addressPerMinute: 2, keys: [known.stored, fresh.stored] });
    expect(await statuses(1, known.text)).toEqual([200]);
    expect(await statuses(3, undefined)).toEqual([401, 401, 429]);
    expect(await statuses(20, known.text)).toEqual(Array(20).fill(200));
    expect(await statuses(1, createKey().text)).toEqual([429]);
    expect(await statuses(1, fresh.text)).toEqual([429]);
    clock.ms += 100;
    expect(await statuses(2, fresh.text)).toEqual([200, 200]);
    expect(await statuses(1, undefined)).toEqual([429]);
    clock.ms += 60_001;
    expect(await statuses(1, undefined)).toEqual([401]);
  });

  test("gets no further with the id of a valid key, nor does it make that key unknown", async () => {
    const { text, stored } = createKey();
    const { statuses, lookups } = await startGuarded({ addressPerMinute: 2, keys: [stored] });
    expect(await statuses(1, text)).toEqual([200]);
    const forged = `linkfence_${stored.id}_${"A".repeat(43)}`;
    expect(await statuses(5, forged)).toEqual([401, 401, 429, 429, 429]);
    expect(lookups()).toBe(4);
    expect(await statuses(1, text)).toEqual([200]);
  });

  test("gets one more look-up with a key that was valid, and then no more than others", async () => {
    const { text, stored } = createKey();
    const { statuses, lookups, byId } = await startGuarded({ addressPerMinute: 2, keys: [stored] });
    expect(await statuses(1, text)).toEqual([200]);
    expect(await statuses(2, undefined)).toEqual([401, 401]);
    byId.clear();
    expect(await statuses(5, text)).toEqual(Array(5).fill(429));
    expect(lookups()).toBe(3);
  });

  test("pays nothing for calls with a valid key, however many run at once", async () => {
    const { text, stored } = createKey();
    const { ask, limits } = await startGuarded({ addressPerMinute: 2, keys: [stored] });
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(text)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100);
    expect(limits.address.stats().clients).toBe(0);
  });

  test.each([
    ["IPv4 addresses", "192.0.2.1", "192.0.2.2", false],
    ["one IPv4 address, also as IPv6", "192.0.2.1", "::ffff:192.0.2.1", true],
    ["addresses of one /64", "2001:db8:0:1::1", "2001:db8:0:1:ffff::9", true],
    ["addresses of two /64", "2001:db8:0:1::1", "2001:db8:0:2::1", false],
    ["what is no address, which the proxy stands for", "unknown", "198.51.100.7:1234", true],
  ])("is told apart by network: %s", async (_what, one, other, same) => {
    const { statuses } = await startGuarded({ addressPerMinute: 1 });
    expect(await statuses(2, undefined, one)).toEqual([401, 429]);
    expect(await statuses(1, undefined, other)).toEqual([same ? 429 : 401]);
  });

  test("has a network also where its connection is gone", () => {
    const request = { ip: undefined, socket: {} } as Parameters<typeof networkOf>[0];
    expect(networkOf(request)).toBe("unknown");
  });
});
