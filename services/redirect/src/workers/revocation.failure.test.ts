// A confirmed revocation and several workers: none of them answers with the old target afterwards, whatever becomes of them.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createApiClient, createHttpClient, mapConcurrently, type Stack, startStack, until } from "@linkfence/testkit";
import { isAlive, pidsOf, reload } from "./started-workers.fixture.ts";

const WORKERS = 3;
/** Connections that are kept, so that each worker has some of them. */
const VISITORS = 9;

let stack: Stack;
let visitors: ReturnType<typeof createHttpClient>[];
const http = createHttpClient();
beforeAll(async () => {
  stack = await startStack({ redirectEnv: { REDIRECT_WORKERS: `${WORKERS}`, CACHE_TTL_MS: "60000" } });
  visitors = Array.from({ length: VISITORS }, () => createHttpClient(1));
});
afterAll(async () => {
  for (const visitor of [...visitors, http]) visitor.close();
  await stack.stop();
});

type Created = { code: string };
type Revoked = { effective: { confirmed: boolean; by: string; instances: { total: number } } };
const redirect = () => stack.redirects[0] as Stack["redirects"][number];
const api = () => createApiClient(http, stack.write.url, stack.adminKey);

async function create(): Promise<string> {
  const { json } = await api()<Created>("POST", "/v1/links", { target: "https://example.com/" });
  return json.code;
}

/** What each visitor is answered. */
const askAll = (code: string) =>
  Promise.all(visitors.map(async (visitor) => (await visitor.send(redirect().url, `/${code}`)).status));

/** Has every worker know the link, revokes it while visitors keep asking, and asks on every connection after the answer. */
async function revokeWarm(): Promise<Revoked["effective"]> {
  const code = await create();
  expect(new Set(await askAll(code))).toEqual(new Set([302]));
  const over = new AbortController();
  const asking = mapConcurrently(visitors, VISITORS, async (visitor) => {
    while (!over.signal.aborted) await visitor.send(redirect().url, `/${code}`);
  });
  const { status, json } = await api()<Revoked>("DELETE", `/v1/links/${code}?wait=effective&timeoutMs=5000`);
  const after = askAll(code);
  over.abort();
  await asking;
  expect(status).toBe(200);
  expect(new Set(await after)).toEqual(new Set([410]));
  return json.effective;
}

test("each of three workers is an instance that a revocation waits for, and obeys it", async () => {
  const { json } = await api()<{ items: { id: string; address: string }[] }>("GET", "/v1/instances");
  const names = json.items.map(({ address }) => address.replace(/^.* worker /, ""));
  expect(names.sort()).toEqual(["1", "2", "3"]);
  for (let round = 0; round < 20; round += 1)
    expect(await revokeWarm()).toMatchObject({ confirmed: true, by: "acknowledged", instances: { total: WORKERS } });
});

test("so they do while all of them are replaced", async () => {
  const before = pidsOf(redirect());
  let reloaded = false;
  const reloading = reload(redirect()).then((outcome) => {
    reloaded = true;
    return outcome;
  });
  let rounds = 0;
  for (; !reloaded || rounds === 0; rounds += 1)
    expect(await revokeWarm()).toMatchObject({ confirmed: true, by: "acknowledged" });
  expect(await reloading).toBe("done");
  expect([...before.values()].filter(isAlive)).toEqual([]);
  expect(await revokeWarm()).toMatchObject({ confirmed: true, instances: { total: WORKERS } });
});

test("one that stands still is waited for, and is not taken to have obeyed", async () => {
  const [stuck = 0] = pidsOf(redirect()).values();
  const code = await create();
  await askAll(code);
  process.kill(stuck, "SIGSTOP");
  const revoked = await api()<Revoked>("DELETE", `/v1/links/${code}?wait=effective&timeoutMs=500`);
  expect(revoked.status).toBe(202);
  expect(revoked.json.effective.confirmed).toBe(false);
  process.kill(stuck, "SIGCONT");
  await until(async () => {
    const again = await api()<Revoked>("DELETE", `/v1/links/${code}?wait=effective&timeoutMs=5000`);
    return again.json.effective.confirmed;
  });
  expect(new Set(await askAll(code))).toEqual(new Set([410]));
});
