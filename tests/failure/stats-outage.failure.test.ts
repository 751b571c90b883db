// Statistics never touch a redirect: the same requests, with the statistics side broken in every way and whole.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "@jest/globals";
import {
  createApiClient,
  createHttpClient,
  type FaultMode,
  type FaultProxy,
  mapConcurrently,
  readMetric,
  type Stack,
  startFaultProxy,
  startStack,
  testServerUrl,
} from "@linkfence/testkit";

const LINKS = 20;
const REQUESTS = 600;
/** Clicks that the ring holds: fewer than the requests, so that a long outage has to drop some. */
const RING = 256;

const http = createHttpClient();

/** Starts the product with a proxy in front of the statistics database. */
async function startBehindProxy(): Promise<{ stack: Stack; proxy: FaultProxy }> {
  const proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
  const stack = await startStack({
    redirectEnv: { CLICK_QUEUE_CAPACITY: String(RING) },
    through: { stats: proxy.through },
  });
  return { stack, proxy };
}

async function createCodes(stack: Stack): Promise<string[]> {
  const api = createApiClient(http, stack.write.url, stack.adminKey);
  const links = Array.from({ length: LINKS }, (_, n) => ({ target: `https://example.com/${n}` }));
  const { json } = await api<{ results: { link: { code: string } }[] }>("POST", "/v1/links:batch", { links });
  return json.results.map(({ link }) => link.code);
}

/** Follows the links, with unknown codes and wrong methods among them, and returns the statuses in order. */
function follow(stack: Stack, codes: readonly string[]): Promise<number[]> {
  const base = stack.redirects[0]?.url ?? "";
  return mapConcurrently(Array.from({ length: REQUESTS }), 16, async (_, n) => {
    const path = n % 10 === 9 ? `/unknown${n}` : `/${codes[n % codes.length]}`;
    return (await http.send(base, path, { method: n % 15 === 14 ? "POST" : "GET", timeoutMs: 5000 })).status;
  });
}

const redirected = (statuses: readonly number[]) => statuses.filter((status) => status === 302).length;

/** The ledger of the redirect once nothing is in flight any more. */
async function settledLedger(stack: Stack) {
  const [redirect] = stack.redirects;
  if (!redirect) throw new Error("no redirect process");
  while ((await readMetric(redirect, "linkfence_clicks_in_flight")) > 0);
  const read = (name: string) => readMetric(redirect, `linkfence_clicks_${name}`);
  return {
    accepted: await read("accepted_total"),
    inserted: await read("inserted_total"),
    duplicate: await read("duplicate_total"),
    refused: await read("refused_total"),
    dropped: await read('dropped_total{reason="ring-full"}'),
  };
}

const storedRows = async (stack: Stack) => {
  const [row] = await stack.stats.sql`SELECT count(*)::int AS rows, count(DISTINCT click_id)::int AS ids FROM click`;
  return row;
};

describe("with the statistics database out of reach for the whole run", () => {
  test.each<FaultMode>(["refuse", "hang"])(
    "(%s) every status is the same, and counted + dropped = sent afterwards",
    async (mode) => {
      const { stack, proxy } = await startBehindProxy();
      const codes = await createCodes(stack);
      const undisturbed = await follow(stack, codes);
      await settledLedger(stack);

      proxy.set(mode);
      const disturbed = await follow(stack, codes);
      expect(disturbed).toEqual(undisturbed);
      const api = createApiClient(http, stack.write.url, stack.adminKey);
      const stats = await api<{ code: string }>("GET", `/v1/links/${codes[0]}/stats`);
      expect([stats.status, stats.json.code]).toEqual([503, "statistics-unavailable"]);
      expect((await api("POST", "/v1/links", { target: "https://example.com/still" })).status).toBe(201);

      proxy.set("pass");
      if (mode === "hang") proxy.reset();
      const sent = redirected(undisturbed) + redirected(disturbed);
      const ledger = await settledLedger(stack);
      expect(ledger.accepted).toBe(sent);
      expect(ledger.dropped).toBeGreaterThan(0);
      expect(ledger.inserted + ledger.duplicate + ledger.refused + ledger.dropped).toBe(sent);
      expect(await storedRows(stack)).toEqual({ rows: sent - ledger.dropped, ids: sent - ledger.dropped });
      await stack.stop();
      await proxy.close();
    },
  );

  test("(locked table) every status is the same, and all of it is counted after the release", async () => {
    const { stack, proxy } = await startBehindProxy();
    const codes = await createCodes(stack);
    const locker = await stack.stats.sql.reserve();
    await locker`BEGIN`;
    await locker`LOCK TABLE click IN ACCESS EXCLUSIVE MODE`;
    const statuses = await follow(stack, codes.slice(0, 1));
    await locker`COMMIT`;
    locker.release();
    const ledger = await settledLedger(stack);
    expect(ledger.accepted).toBe(redirected(statuses));
    expect((await storedRows(stack))?.rows).toBe(ledger.accepted - ledger.dropped);
    expect(redirected(statuses)).toBeGreaterThan(RING);
    await stack.stop();
    await proxy.close();
  });
});

describe("control: statistics written in the request", () => {
  test("a server that stores the click before it answers does not answer while the table is locked", async () => {
    const { stack, proxy } = await startBehindProxy();
    const server = createServer(async (_request, response) => {
      await stack.stats.sql`INSERT INTO click (click_id, code, link_version, clicked_at)
        VALUES (gen_random_uuid(), 'abc', 1, now())`;
      response.writeHead(302, { Location: "https://example.com/" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const locker = await stack.stats.sql.reserve();
    await locker`BEGIN`;
    await locker`LOCK TABLE click IN ACCESS EXCLUSIVE MODE`;
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const answers = await Promise.allSettled([1, 2, 3].map(() => http.send(base, "/abc", { timeoutMs: 1000 })));
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    await locker`COMMIT`;
    locker.release();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await stack.stop();
    await proxy.close();
  });
});
