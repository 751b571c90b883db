// Clicks and an ingest that is away, hangs, or talks nonsense: no redirect notices, and afterwards the account closes.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  mapConcurrently,
  type RunningService,
  readMetric,
  startService,
  type TestDatabase,
  until,
  waitUntilReady,
} from "@linkfence/testkit";

const RING = 8;
const CLICKS = 30;

type Clicks = { id: string; code: string }[];
type Behaviour = (response: ServerResponse, clicks: Clicks) => void;

let database: TestDatabase;
let ingest: Server;
let redirect: RunningService;
let behave: Behaviour;
/** Ids that are stored, each once, as the real one keeps them. */
let rows: Set<string>;
const http = createHttpClient();

const reply = (response: ServerResponse, status: number, body: string) =>
  response.writeHead(status, { "Content-Type": "application/json" }).end(body);

const store: Behaviour = (response, clicks) => {
  const fresh = clicks.filter(({ id }) => !rows.has(id));
  for (const { id } of fresh) rows.add(id);
  const [received, inserted] = [clicks.length, fresh.length];
  reply(response, 200, JSON.stringify({ received, inserted, duplicate: received - inserted, refused: 0 }));
};

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  behave(response, (JSON.parse(Buffer.concat(chunks).toString()) as { clicks: Clicks }).clicks);
}

beforeAll(async () => {
  database = await createTestDatabase("main");
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES ('abc', 'https://example.com/', 'ann', 'ALIAS', 'k')`;
});
afterAll(async () => {
  http.close();
  await database.drop();
});
beforeEach(async () => {
  rows = new Set();
  behave = store;
  ingest = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  redirect = await startService("redirect", {
    DATABASE_URL: database.url,
    CLICK_INGEST_URL: `http://127.0.0.1:${(ingest.address() as AddressInfo).port}`,
    CLICK_QUEUE_CAPACITY: String(RING),
    CLICK_FLUSH_TIMEOUT_MS: "500",
    NEGATIVE_TTL_MS: "10000",
  });
  await waitUntilReady(redirect);
});
afterEach(async () => {
  await redirect.stop();
  await closeIngest();
});

async function closeIngest(): Promise<void> {
  if (!ingest.listening) return;
  const closed = new Promise((resolve) => ingest.close(resolve));
  ingest.closeAllConnections();
  await closed;
}

/** What visitors are answered: a link, a code that does not exist, and a method that is refused, in turn. */
const follow = () =>
  mapConcurrently(Array.from({ length: CLICKS }), 8, async () => {
    const base = redirect.url;
    const [link, unknown, wrong] = await Promise.all([
      http.send(base, "/abc"),
      http.send(base, "/unknown"),
      http.send(base, "/abc", { method: "POST" }),
    ]);
    return [link.status, unknown.status, wrong.status];
  });

async function ledger() {
  const read = (name: string) => readMetric(redirect, `linkfence_clicks_${name}`);
  return {
    accepted: await read("accepted_total"),
    inserted: await read("inserted_total"),
    duplicate: await read("duplicate_total"),
    refused: await read("refused_total"),
    full: await read('dropped_total{reason="ring-full"}'),
    batchRefused: await read('dropped_total{reason="batch-refused"}'),
    inFlight: await read("in_flight"),
  };
}

/** Waits until nothing is in flight; the account is read after that, since it is not read in one turn. */
async function settledLedger() {
  await until(async () => (await ledger()).inFlight === 0);
  return ledger();
}

const away =
  (status: number): Behaviour =>
  (response) =>
    reply(response, status, "{}");

describe("statistics never touch a redirect", () => {
  test.each<[string, Behaviour]>([
    ["hangs", () => {}],
    ["answers 500", away(500)],
    ["answers nonsense", (response) => reply(response, 200, "<html>")],
    ["hangs up", (response) => response.destroy()],
  ])(
    "when the ingest %s: the same answers, and stored + dropped = clicked once it is back",
    async (_what, behaviour) => {
      behave = behaviour;
      const answers = await follow();
      expect(answers).toEqual(Array(CLICKS).fill([302, 404, 405]));
      expect(rows.size).toBe(0);

      behave = store;
      ingest.closeAllConnections();
      const { accepted, inserted, duplicate, refused, full, batchRefused } = await settledLedger();
      expect(accepted).toBe(CLICKS);
      expect(full).toBeGreaterThan(0);
      expect([duplicate, refused, batchRefused]).toEqual([0, 0, 0]);
      expect(inserted + full).toBe(CLICKS);
      expect(rows.size).toBe(inserted);
    },
  );

  test("when nobody listens there: the same answers, and the first trouble is logged once", async () => {
    await closeIngest();
    expect(await follow()).toEqual(Array(CLICKS).fill([302, 404, 405]));
    await until(async () => (await readMetric(redirect, "linkfence_click_batch_failures_total")) >= 3);
    const { accepted, full, inFlight } = await ledger();
    expect([accepted, full + inFlight]).toEqual([CLICKS, CLICKS]);
    const troubles = redirect.records().filter(({ message }) => message.includes("clicks cannot be stored"));
    expect(troubles).toHaveLength(1);
  });

  test("when it will never take a batch: the batch is dropped and counted, and the next one is stored", async () => {
    behave = away(400);
    await http.send(redirect.url, "/abc");
    await until(async () => (await ledger()).batchRefused !== 0);
    behave = store;
    await http.send(redirect.url, "/abc");
    expect(await settledLedger()).toMatchObject({ accepted: 2, inserted: 1, batchRefused: 1, inFlight: 0 });
  });
});

describe("clicks", () => {
  test("that wait at a stop are sent before the process ends", async () => {
    await http.send(redirect.url, "/abc");
    await redirect.stop();
    expect(rows.size).toBe(1);
  });
});
