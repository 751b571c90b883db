// Click-ingest in every bad mood: its failure is one answer of one route, in bounded time and memory.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import { createStatistics } from "./statistics.ts";

let ingest: Server | undefined;
afterEach(() => {
  ingest?.closeAllConnections();
  ingest?.close();
  ingest = undefined;
});

/** Starts an ingest that answers like this, and returns its URL. */
async function startIngest(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  ingest = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json =
  (body: string, status = 200): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { "Content-Type": "application/json" }).end(body);
  };

const EDGES = [4 * QUARTER_MS, 5 * QUARTER_MS, 9 * QUARTER_MS];
const SUMS = {
  total: 7,
  bots: 1,
  prefetches: 2,
  series: [
    [3, 1, 0],
    [4, 0, 2],
  ],
  dropped: [],
};
const LINK = { code: "promo", ...SUMS, top: null };
const OWNER = { ...SUMS, links: [{ code: "promo", total: 7, bots: 1, prefetches: 2 }] };

describe("statistics", () => {
  test("are what the ingest says about this code", async () => {
    const asked: string[] = [];
    const baseUrl = await startIngest((request, response) => {
      asked.push(request.url ?? "");
      response.end(JSON.stringify(request.url?.startsWith("/v1/stats") ? OWNER : LINK));
    });
    const statistics = createStatistics({ baseUrl: `${baseUrl}/`, timeoutMs: 5000 });
    expect(await statistics.readLink("promo", EDGES)).toEqual(LINK);
    expect(await statistics.readOwner("Ann & Söhne", EDGES)).toEqual(OWNER);
    expect(asked).toEqual([
      "/v1/links/promo/stats?start=3600000&steps=1%2C4&top=10",
      "/v1/stats?owner=Ann+%26+S%C3%B6hne&start=3600000&steps=1%2C4&top=10",
    ]);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 0 });
  });

  test("are asked for with the secret where there is one", async () => {
    const shown: (string | undefined)[] = [];
    const baseUrl = await startIngest((request, response) => {
      shown.push(request.headers.authorization);
      response.end(JSON.stringify(LINK));
    });
    await createStatistics({ baseUrl, timeoutMs: 5000 }).readLink("promo", EDGES);
    await createStatistics({ baseUrl, secret: "a-secret", timeoutMs: 5000 }).readLink("promo", EDGES);
    expect(shown).toEqual([undefined, "Bearer a-secret"]);
  });

  test("of single clicks are asked for by their number and the one behind which they start", async () => {
    const asked: string[] = [];
    const baseUrl = await startIngest((request, response) => {
      asked.push(request.url ?? "");
      response.end('{"items":[]}');
    });
    const statistics = createStatistics({ baseUrl, timeoutMs: 5000 });
    expect(await statistics.readClicks("promo", { limit: 3, before: null })).toEqual([]);
    expect(await statistics.readClicks("promo", { limit: 3, before: "an-id" })).toEqual([]);
    expect(asked).toEqual(["/v1/links/promo/clicks?limit=3", "/v1/links/promo/clicks?limit=3&before=an-id"]);
  });

  test.each<[string, RequestListener]>([
    ["answers 500", json("{}", 500)],
    ["answers 404", json("{}", 404)],
    ["answers 503 with nothing", json("", 503)],
    ["answers with something else", json('{"total":"many"}')],
    ["answers with no JSON", json("<html>")],
    ["answers as it did before there were steps", json('{"code":"promo","total":7}')],
    ["answers for another code", json(JSON.stringify({ ...LINK, code: "other" }))],
    ["answers another number of steps", json(JSON.stringify({ ...LINK, series: [[7, 1, 2]] }))],
    ["answers with steps that do not add up", json(JSON.stringify({ ...LINK, total: 8 }))],
    [
      "answers with less than nothing",
      json(
        JSON.stringify({
          ...LINK,
          total: 6,
          series: [
            [7, 1, 2],
            [-1, 0, 0],
          ],
        }),
      ),
    ],
    ["answers nothing", json("")],
    ["sends elsewhere", (_request, response) => response.writeHead(302, { Location: "http://127.0.0.1:1/" }).end()],
    ["hangs before its answer", () => {}],
    ["hangs in the middle of its answer", (_request, response) => void response.write('{"code":')],
    ["hangs up", (request) => request.socket.destroy()],
    [
      "never stops answering",
      (_request, response) => {
        const more = () => {
          while (response.write(" ".repeat(65_536)));
          response.once("drain", more);
        };
        more();
      },
    ],
  ])("cannot be had when it %s, and the place of the question is free again", async (_what, answer) => {
    const statistics = createStatistics({ baseUrl: await startIngest(answer), timeoutMs: 500 });
    await expect(statistics.readLink("promo", EDGES)).rejects.toMatchObject({ code: "statistics-unavailable" });
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 1 });
  });

  test("that never come to their end are given up at the deadline, whatever garbage is collected meanwhile", async () => {
    setFlagsFromString("--expose_gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const baseUrl = await startIngest((_request, response) => void response.write('{"code":'));
    const statistics = createStatistics({ baseUrl, timeoutMs: 500 });
    const collector = setInterval(collectGarbage, 20);
    const reads = Array.from({ length: 32 }, () => statistics.readLink("promo", EDGES));
    for (const result of await Promise.allSettled(reads)) expect(result.status).toBe("rejected");
    clearInterval(collector);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 32 });
  });

  test("are asked for by 32 at a time; one more is refused without waiting for the others", async () => {
    const baseUrl = await startIngest(() => {});
    const statistics = createStatistics({ baseUrl, timeoutMs: 2000 });
    const waiting = Array.from({ length: 32 }, () =>
      statistics.readLink("promo", EDGES).catch((error: unknown) => error),
    );
    await expect(statistics.readLink("promo", EDGES)).rejects.toMatchObject({ code: "statistics-unavailable" });
    expect(statistics.stats()).toEqual({ underWay: 32, failures: 0 });
    await Promise.all(waiting);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 32 });
  });

  test("that begin to fail, and that succeed again, are told once each, with the network's own words", async () => {
    let healthy = false;
    const told: unknown[] = [];
    const baseUrl = await startIngest((_request, response) => {
      if (healthy) response.end(JSON.stringify(LINK));
      else response.destroy();
    });
    const statistics = createStatistics({ baseUrl, timeoutMs: 5000, onChange: (cause) => told.push(cause) });
    for (healthy of [false, false, true, true, false]) await statistics.readLink("promo", EDGES).catch(() => {});
    expect(told.map((cause) => (cause === undefined ? "well" : String(cause)))).toEqual([
      expect.stringMatching(/other side closed|socket hang up|ECONNRESET/),
      "well",
      expect.stringMatching(/other side closed|socket hang up|ECONNRESET/),
    ]);
  });
});
