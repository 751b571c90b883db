// Requests made from the OpenAPI document, right ones and bent ones, against a real service on a real database. More of
// them, and other ones: `pnpm fuzz --requests 5000 --seed 7`.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ApiWorld, startApiWorld } from "../api-world.fixture.ts";
import { createFuzzer, printTally } from "./fuzz-run.fixture.ts";
import { fillPath, type Operation, operations } from "./operations.fixture.ts";

const REQUESTS = Number(process.env.LINKFENCE_FUZZ_REQUESTS ?? "200");
const SEED = Number(process.env.LINKFENCE_FUZZ_SEED ?? "20260131");
/** On an idle machine two hundred requests take a second; a busy one sends fewer of them rather than none to the end. */
const TIME_LIMIT_MS = Math.max(10_000, REQUESTS * 50);
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

let world: ApiWorld;
let fuzzer: ReturnType<typeof createFuzzer>;
beforeAll(async () => {
  // A database that is merely slow is no finding.
  world = await startApiWorld({ QUERY_TIMEOUT_MS: "20000" });
  const makeKey = () => world.addKey("fuzz", ["admin"]);
  fuzzer = createFuzzer({ url: world.write.url, makeKey, seed: SEED, requests: REQUESTS, timeLimitMs: TIME_LIMIT_MS });
});
afterAll(async () => {
  fuzzer.close();
  await world.stop();
  process.stdout.write(`fuzzed with seed ${SEED}\n${printTally(fuzzer.tally)}`);
});

describe("whatever is sent", () => {
  // Creations first: what they make is then there to be asked for.
  const inOrder = [...operations].sort((a, b) => Number(b.method === "POST") - Number(a.method === "POST"));

  test.each(inOrder)(
    "$operationId answers as the document says, without a fault of its own, and accepts nothing that is wrong",
    async (operation) => {
      await fuzzer.fuzz(operation);
      const statuses = [...(fuzzer.tally.get(operation.operationId)?.keys() ?? [])];
      expect(statuses.length).toBeGreaterThan(1);
    },
    TIME_LIMIT_MS * 3,
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
  const [createLink] = operations.filter(({ operationId }) => operationId === "createLink") as [Operation];

  /** Fuzzes a server that gives everybody the same answer. */
  async function fuzzAnswer(status: number, type: string, body: string): Promise<void> {
    const common = {
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      Location: "/",
      "Retry-After": "1",
    };
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { ...common, "Content-Type": type }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const bounds = { seed: SEED, requests: 100, timeLimitMs: 30_000 };
    const other = createFuzzer({ url, makeKey: async () => "key", ...bounds });
    try {
      await other.fuzz(createLink);
    } finally {
      other.close();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  const problem = (status: number, code: string) =>
    JSON.stringify({ type: `urn:linkfence:problem:${code}`, title: code, status, code, detail: "for a test" });

  test("finds a fault of the service", async () => {
    const fault = problem(500, "internal");
    await expect(fuzzAnswer(500, "application/problem+json", fault)).rejects.toThrow("answered 500");
  });

  test("finds an answer that is not documented", async () => {
    await expect(fuzzAnswer(201, "application/json", "{}")).rejects.toThrow("OpenAPI document says");
  });

  test("finds that what is wrong is accepted", async () => {
    const { json } = await world.create({ target: "https://example.com/" });
    await expect(fuzzAnswer(201, "application/json", JSON.stringify(json))).rejects.toThrow("although wrong in");
  });
});
