// How long a revocation takes to be in force everywhere: as its caller waits, and from its commit on, beside the round trip
// of an empty transaction on the same server through the same driver.
import {
  createHttpClient,
  mapConcurrently,
  type RunningService,
  readMetric,
  startService,
  WITHOUT_STATISTICS,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import type postgres from "postgres";
import type { Bench } from "./bench-subject.ts";
import { startBenchWrite } from "./bench-write.ts";
import { cpuOfServer } from "./cpu-time.ts";
import { type LightInstances, startLightInstances } from "./light-process.ts";
import { median, percentile } from "./numbers.ts";
import { withSql } from "./own-server.ts";

const REDIRECTS = 3;
const LIGHT = 50;
const REVOCATIONS = 1000;
/** Fewer where every one is acknowledged fifty times. */
const LIGHT_REVOCATIONS = 300;
const AT_ONCE = 32;
const BATCH = 1000;
const BATCHES = 10;
/** What the processes do by themselves, which is no part of a revocation's price. */
const IDLE_MS = 3000;

/** ms from the request to its answer, and from the commit to the confirmation, as the write service says. */
type Confirmed = { totalMs: number; afterMs: number };
type Effective = { by: string | null; afterMs: number | null; instances: { total: number } };

type World = Bench & { write: RunningService; api: Api; instances: number };
type Api = ReturnType<typeof createApi>;

function createApi(url: string, key: string) {
  const http = createHttpClient(AT_ONCE);
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await http.send(url, path, { method, headers, ...text });
    if (answer.status !== 200) throw new Error(`${method} ${path} was answered ${answer.status} ${answer.body}`);
    return JSON.parse(answer.body) as T;
  }
  return { call, close: () => http.close() };
}

async function createLinks({ api }: World, count: number): Promise<string[]> {
  const codes: string[] = [];
  while (codes.length < count) {
    const links = Array(Math.min(BATCH, count - codes.length)).fill({ target: "https://www.example.com/articles/42" });
    const { results } = await api.call<{ results: { link: { code: string } }[] }>("POST", "/v1/links:batch", { links });
    codes.push(...results.map(({ link }) => link.code));
  }
  return codes;
}

async function timed({ instances }: World, send: () => Promise<{ effective: Effective }>): Promise<Confirmed> {
  const startedAt = performance.now();
  const { effective } = await send();
  const totalMs = performance.now() - startedAt;
  if (effective.by !== "acknowledged" || effective.instances.total !== instances)
    throw new Error(`a revocation was answered ${JSON.stringify(effective)}`);
  return { totalMs, afterMs: effective.afterMs ?? Number.NaN };
}

const revokeOne = (world: World, code: string) => timed(world, () => world.api.call("DELETE", `/v1/links/${code}`));
const revokeMany = (world: World, codes: readonly string[]) =>
  timed(world, () => world.api.call("POST", "/v1/links:revoke", { codes }));

async function emptyTransaction(sql: postgres.Sql): Promise<number> {
  const startedAt = performance.now();
  await sql.begin(async () => {});
  return performance.now() - startedAt;
}

const totals = (all: readonly Confirmed[]) => all.map(({ totalMs }) => totalMs);
const afters = (all: readonly Confirmed[]) => all.map(({ afterMs }) => afterMs);

function tellTimes({ results }: World, what: string, all: readonly Confirmed[]): void {
  for (const [from, times] of [
    ["request to answer", totals(all)],
    ["commit to confirmation", afters(all)],
  ] as const) {
    results.figure(`${what}, ${from}: median`, median(times), "ms");
    results.figure(`${what}, ${from}: p99`, percentile(times, 0.99), "ms");
  }
}

/** Turn by turn with empty transactions, so that both meet the same machine. */
async function revokeOneByOne(world: World, sql: postgres.Sql) {
  const { results, tell } = world;
  tell(`${REVOCATIONS} revocations, one after the other`);
  const all: Confirmed[] = [];
  const empty: number[] = [];
  for (const code of await createLinks(world, REVOCATIONS)) {
    all.push(await revokeOne(world, code));
    empty.push(await emptyTransaction(sql));
  }
  const roundTrip = median(empty);
  results.figure("an empty transaction (BEGIN, COMMIT): median", roundTrip, "ms");
  results.figure("an empty transaction (BEGIN, COMMIT): p99", percentile(empty, 0.99), "ms");
  tellTimes(world, "one after the other", all);
  results.figure("request to answer ÷ an empty transaction, medians", median(totals(all)) / roundTrip);
  results.atMost("commit to confirmation ÷ an empty transaction, medians", median(afters(all)) / roundTrip, 5);
}

async function revokeAtOnce(world: World): Promise<void> {
  world.tell(`${REVOCATIONS} revocations, ${AT_ONCE} at once`);
  const codes = await createLinks(world, REVOCATIONS);
  const startedAt = performance.now();
  const all = await mapConcurrently(codes, AT_ONCE, (code) => revokeOne(world, code));
  const seconds = (performance.now() - startedAt) / 1000;
  tellTimes(world, `${AT_ONCE} at once`, all);
  world.results.figure(`${AT_ONCE} at once`, REVOCATIONS / seconds, "a second");
}

/** A batch and a single one in turn. */
async function revokeInBatches(world: World): Promise<void> {
  const { results, tell } = world;
  tell(`${BATCHES} batches of ${BATCH}`);
  const [one, many]: [Confirmed[], Confirmed[]] = [[], []];
  for (let round = 0; round < BATCHES; round += 1) {
    const [first = "", ...codes] = await createLinks(world, BATCH + 1);
    one.push(await revokeOne(world, first));
    many.push(await revokeMany(world, codes));
  }
  tellTimes(world, `a call with ${BATCH} links`, many);
  results.figure(`${BATCH} links ÷ one, request to answer, medians`, median(totals(many)) / median(totals(one)));
  results.atMost(
    `${BATCH} links ÷ one, commit to confirmation, medians`,
    median(afters(many)) / median(afters(one)),
    3,
  );
}

/** What the server and those who are registered have done so far. */
async function readPrice({ server, write }: World, light: LightInstances) {
  return {
    server: await cpuOfServer(server.pid()),
    light: await light.cpuMs(),
    syncs: await light.syncs(),
    looks: await readMetric(write, "linkfence_registry_looks_total"),
    at: performance.now(),
  };
}

type Price = Awaited<ReturnType<typeof readPrice>>;

/** How much of `what` one revocation takes, over what is done when there are none. */
function priceOf(what: Exclude<keyof Price, "at">, [before, idle, after]: readonly [Price, Price, Price]): number {
  const rate = (idle[what] - before[what]) / (idle.at - before.at);
  return (after[what] - idle[what] - rate * (after.at - idle.at)) / LIGHT_REVOCATIONS;
}

async function revokeWithMany(world: World, light: LightInstances): Promise<void> {
  const { results, tell } = world;
  tell(`${LIGHT_REVOCATIONS} revocations, acknowledged by ${LIGHT} processes`);
  const codes = await createLinks(world, LIGHT_REVOCATIONS);
  const before = await readPrice(world, light);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const idle = await readPrice(world, light);
  const all: Confirmed[] = [];
  for (const code of codes) all.push(await revokeOne(world, code));
  const prices = [before, idle, await readPrice(world, light)] as const;
  const with50 = `${LIGHT} registered`;
  tellTimes(world, with50, all);
  results.figure(`${with50}, the server's CPU for one revocation`, priceOf("server", prices), "ms");
  results.figure(`${with50}, their own CPU for one revocation`, priceOf("light", prices), "ms");
  results.figure(`${with50}, reads of the log and acknowledgements for one revocation`, priceOf("syncs", prices));
  results.figure(`${with50}, looks at the registry for one revocation`, priceOf("looks", prices));
}

/** Measures all of it, on the write service with registered processes. */
export async function measureConfirmation(bench: Bench, url: string, key: string): Promise<void> {
  // Whoever registered in a run that was broken off.
  await withSql(url, 1, (sql) => sql`DELETE FROM redirect_instance`);
  const write = await startBenchWrite(url);
  await waitUntilReady(write);
  const api = createApi(write.url, key);
  const registered = async () => (await api.call<{ items: unknown[] }>("GET", "/v1/instances")).items.length;
  const world: World = { ...bench, write, api, instances: REDIRECTS };

  const start = () => startService("redirect", { DATABASE_URL: url, ...WITHOUT_STATISTICS });
  const redirects = await Promise.all(Array.from({ length: REDIRECTS }, start));
  await Promise.all(redirects.map(waitUntilReady));
  await waitFor("every redirect process listens", async () => {
    const listening = await Promise.all(redirects.map((redirect) => readMetric(redirect, "linkfence_listening")));
    return listening.every((each) => each === 1);
  });
  // Nothing is compiled yet.
  for (const code of await createLinks(world, AT_ONCE)) await revokeOne(world, code);
  await withSql(url, 1, (sql) => revokeOneByOne(world, sql));
  await revokeAtOnce(world);
  await revokeInBatches(world);
  await Promise.all(redirects.map((redirect) => redirect.stop()));

  const light = await startLightInstances(url, LIGHT);
  await waitFor("all of them in the registry", async () => (await registered()) === LIGHT);
  await revokeWithMany({ ...world, instances: LIGHT }, light);
  await light.stop();
  api.close();
  await write.stop();
}
