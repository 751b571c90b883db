// Requests made from the OpenAPI document, right ones and bent ones, against a real service on a real database. More of
// them, and other ones: `pnpm fuzz --requests 5000 --seed 7`.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { type ApiWorld, type Body, startApiWorld } from "../api-world.fixture.ts";
import { type Exporter, startExporter } from "../exporter.fixture.ts";
import { sendFile } from "../imports.fixture.ts";
import { createJudge } from "./fuzz-judge.fixture.ts";
import { createFuzzer, printTally } from "./fuzz-run.fixture.ts";
import { fillPath, type Operation, operations } from "./operations.fixture.ts";

const { LINKFENCE_FUZZ_REQUESTS, LINKFENCE_FUZZ_SEED } = process.env;
const REQUESTS = Number(LINKFENCE_FUZZ_REQUESTS ?? "200");
const SEED = Number(LINKFENCE_FUZZ_SEED ?? "20260131");
/** Of all operations together. Unasked it is a part of the tests, which have other things to do; asked for, it takes its time. */
const BUDGET_MS = LINKFENCE_FUZZ_REQUESTS === undefined ? 20_000 : Math.max(20_000, REQUESTS * operations.length * 50);
/** What each operation gets of it at the least, on however busy a machine. */
const SHARE_MIN_MS = 500;
/** With so many requests each way of success that the document has is found. */
const MANY = 1000;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

/** Starts a server that answers by `listener`. */
async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

let world: ApiWorld;
let ingest: Exporter;
let fuzzer: ReturnType<typeof createFuzzer>;
/** An export whose file is there. */
let exported: unknown;
let spentMs = 0;
let left = operations.length;
beforeAll(async () => {
  ingest = await startExporter({ EXPORT_QUEUE_MAX: "100000", EXPORT_QUEUE_OWNER_MAX: "100000" });
  world = await startApiWorld({
    CLICK_INGEST_URL: ingest.url,
    // A database that is merely slow is no finding.
    QUERY_TIMEOUT_MS: "20000",
    // A limit would stop the fuzzer, and all that it sends afterwards would look refused.
    RATE_LIMIT_KEY_PER_MINUTE: "0",
    RATE_LIMIT_ADDRESS_PER_MINUTE: "0",
  });
  fuzzer = createFuzzer({ url: world.write.url, makeKey, seed: SEED, requests: REQUESTS });
  await prepare();
});
afterAll(async () => {
  fuzzer.close();
  await world.stop();
  await ingest.stop();
  process.stdout.write(`fuzzed with seed ${SEED}\n${printTally(fuzzer.tally)}`);
});

const makeKey = () => world.addKey("fuzz", ["admin"]);

/** Has something of each kind to ask for, whichever operation comes first. */
async function prepare(): Promise<void> {
  const key = await makeKey();
  const ask = async (method: string, path: string, body?: Body) =>
    fuzzer.learn(path, (await world.api(method, path, body, key)).json);
  for (const alias of ["fuzz-1", "fuzz-2"])
    await ask("POST", "/v1/links", { target: "https://example.com/", alias, tags: ["t"] });
  await prepareKeys(key);
  fuzzer.learn("/v1/imports", (await sendFile(world.write.url, key, "target\nhttps://example.com/\nnonsense")).body);
  exported = await prepareExport(key);
  for (const path of ["/v1/links?limit=1", "/v1/keys?limit=1", "/v1/changes"]) await ask("GET", path);
}

/** So that it is asked for again and again, among twenty that are remembered. */
function learnWell(path: string, answer: unknown): void {
  for (let times = 0; times < 3; times += 1) fuzzer.learn(path, answer);
}

/** One that is still among those remembered: answers of the other operations push out what was learnt before. */
async function prepareRevokedLink(key: string): Promise<void> {
  const { json } = await world.api("POST", "/v1/links", { target: "https://example.com/" }, key);
  learnWell("/v1/links", (await world.api("DELETE", `/v1/links/${json.code}`, undefined, key)).json);
}

async function prepareKeys(key: string): Promise<void> {
  for (const name of ["first", "second", "third"]) {
    const { json } = await world.api("POST", "/v1/keys", { name, scopes: ["links:read"] }, key);
    fuzzer.learn("/v1/keys", json);
  }
}

/** One whose file is there. Nothing is exported afterwards: what is ordered from then on waits, and can be cancelled. */
async function prepareExport(key: string) {
  const { json } = await world.api("POST", "/v1/exports", {}, key);
  await until(
    async () => (await world.api("GET", `/v1/exports/${json.id}`, undefined, key)).json.state === "SUCCEEDED",
  );
  await ingest.ingest().stop();
  await ingest.restart({ EXPORT_WORKERS: "0" });
  return json;
}

async function prepareWaitingExport(key: string): Promise<void> {
  learnWell("/v1/exports", (await world.api("POST", "/v1/exports", {}, key)).json);
}

describe("whatever is sent", () => {
  // An owner may have a thousand keys that can be used, behind which nothing but refusals would come; and those that are
  // remembered may all have been revoked or replaced, and links none of them; and exports
  // may all have been cancelled.
  beforeEach(async () => {
    await world.database.sql`UPDATE api_key SET revoked_at = now() WHERE owner = 'fuzz' AND revoked_at IS NULL`;
    const key = await makeKey();
    await prepareRevokedLink(key);
    await prepareWaitingExport(key);
    learnWell("/v1/exports", exported);
    await prepareKeys(key);
  });

  test.each(operations)(
    "$operationId answers as the document says, without a fault of its own, and accepts nothing that is wrong",
    async (operation) => {
      const startedAt = performance.now();
      await fuzzer.fuzz(operation, Math.max(SHARE_MIN_MS, (BUDGET_MS - spentMs) / left));
      spentMs += performance.now() - startedAt;
      left -= 1;
      const tally = fuzzer.tally.get(operation.operationId) ?? new Map<string, number>();
      const statuses = [...tally.keys()].map(Number);
      expect(statuses.length).toBeGreaterThan(0);
      const count = [...tally.values()].reduce((a, b) => a + b, 0);
      // A busy machine sent fewer of them within the time, and may not have come to everything.
      if (count < REQUESTS) return;
      expect(statuses.filter((status) => status >= 400).length).toBeGreaterThan(0);
      // A part comes for who asks for one, which no parameter says.
      const successes = operation.successes.filter((status) => status !== 206);
      const found = successes.filter((status) => statuses.includes(status));
      expect(found).toEqual(REQUESTS < MANY ? expect.arrayContaining([expect.any(Number)]) : successes);
    },
    BUDGET_MS + 60_000,
  );

  test("a method that a path does not have is 405 with those that it has", async () => {
    const paths = new Map(operations.map((operation) => [operation.path, operation]));
    for (const operation of paths.values()) {
      const own = operations.filter(({ path }) => path === operation.path).map(({ method }) => method);
      for (const method of METHODS.filter((method) => !own.includes(method))) {
        const answer = await world.raw(
          fillPath(operation, () => "absent"),
          { method, headers: world.authorized() },
        );
        expect([method, answer.status, answer.headers.allow?.split(", ").filter((name) => name !== "HEAD")]).toEqual([
          method,
          405,
          own,
        ]);
      }
    }
  });

  test("nothing of it is logged as an error, and the service stays ready", async () => {
    expect(world.write.records().filter(({ level }) => level === "error")).toEqual([]);
    expect((await fetch(`${world.write.opsUrl}/readyz`)).status).toBe(200);
  });
});

describe("the fuzzer", () => {
  /** Fuzzes a server that gives everybody the same answer. */
  async function fuzzAnswer(operation: Operation, status: number, body: unknown): Promise<void> {
    const fields = {
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "X-Request-Id": "r",
      "Content-Type": status < 400 ? "application/json" : "application/problem+json",
      Location: "/",
      "Retry-After": "1",
    };
    const server = await serve((request, response) => {
      request.resume();
      response.writeHead(status, fields).end(JSON.stringify(body));
    });
    const other = createFuzzer({ url: server.url, makeKey: async () => "key", seed: SEED, requests: 200 });
    try {
      await other.fuzz(operation, 30_000);
    } finally {
      other.close();
      await server.close();
    }
  }

  const problem = (status: number, code: string) => ({
    ...{ type: `urn:linkfence:problem:${code}`, title: code, status, code, detail: "for a test" },
  });
  const named = (name: string) => operations.find(({ operationId }) => operationId === name) as Operation;

  test("finds a fault of the service", async () => {
    await expect(fuzzAnswer(named("createLink"), 500, problem(500, "internal"))).rejects.toThrow("answered 500");
  });

  test("finds that a limit keeps it out", async () => {
    const refusal = problem(429, "rate-limited");
    await expect(fuzzAnswer(named("createLink"), 429, refusal)).rejects.toThrow("stopped by a limit");
  });

  test("finds an answer that is not documented", async () => {
    await expect(fuzzAnswer(named("createLink"), 201, {})).rejects.toThrow("OpenAPI document says");
    await expect(fuzzAnswer(named("createLink"), 418, {})).rejects.toThrow("418 is not documented");
  });

  test("finds that what is wrong is accepted: a body, a query, a header field, a missing key", async () => {
    const { json } = await world.create({ target: "https://example.com/" });
    await expect(fuzzAnswer(named("createLink"), 201, json)).rejects.toThrow("although wrong in");
    const page = { items: [], next: null, position: 0 };
    const everything = fuzzAnswer(named("listChanges"), 200, page);
    await expect(everything).rejects.toThrow(/although wrong in (query|header)|accepted without a key/);
    const { faultsOf, itemFaults } = createJudge();
    const request = { method: "GET", target: "/v1/changes", params: {}, body: null, credentials: "key" as const };
    const judge = (target: string, headers: Record<string, string>) =>
      faultsOf(named("listChanges"), { ...request, target, headers });
    expect(judge("/v1/changes?after=5", { "Last-Event-ID": "5" })).toEqual([]);
    expect(judge("/v1/changes?after=-5&x=1", {})).toEqual(["query: x unknown", "query: after"]);
    expect(judge("/v1/changes", { "Last-Event-ID": "x" })).toEqual(["header: Last-Event-ID"]);
    const headers = { "Content-Type": "application/json" };
    const posted = (body: string) => ({ ...request, headers, target: "", body: new TextEncoder().encode(body) });
    const create = (body: string) => faultsOf(named("createLink"), posted(body));
    expect(create('{"target":"x"}')).toEqual([]);
    for (const body of ['{"target":5}', '{"target":"x","y":1}', "{}", "[]", "{"])
      expect([body, create(body)]).toEqual([body, ["body: schema"]]);
    const batch = posted('{"links":[{"target":"x"},{"target":5}]}');
    expect(faultsOf(named("createLinks"), batch)).toEqual([]);
    const results = (second: number) => ({ results: [{ status: 201 }, { status: second }] });
    expect(itemFaults(named("createLinks"), batch, results(400))).toEqual([]);
    expect(itemFaults(named("createLinks"), batch, results(201))).toEqual(["body: links[1]"]);
  });
});
