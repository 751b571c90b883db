// Click-ingest in every bad mood: its failure is one answer of one route, in bounded time and memory.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "@jest/globals";
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

describe("statistics", () => {
  test("are what the ingest says about this code", async () => {
    const asked: string[] = [];
    const baseUrl = await startIngest((request, response) => {
      asked.push(request.url ?? "");
      response.end('{"code":"promo","total":7}');
    });
    const statistics = createStatistics({ baseUrl: `${baseUrl}/`, timeoutMs: 5000 });
    expect(await statistics.read("promo")).toEqual({ code: "promo", total: 7 });
    expect(asked).toEqual(["/v1/links/promo/stats"]);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 0 });
  });

  test("are asked for with the secret where there is one", async () => {
    const shown: (string | undefined)[] = [];
    const baseUrl = await startIngest((request, response) => {
      shown.push(request.headers.authorization);
      response.end('{"code":"promo","total":7}');
    });
    await createStatistics({ baseUrl, timeoutMs: 5000 }).read("promo");
    await createStatistics({ baseUrl, secret: "a-secret", timeoutMs: 5000 }).read("promo");
    expect(shown).toEqual([undefined, "Bearer a-secret"]);
  });

  test.each<[string, RequestListener]>([
    ["answers 500", json("{}", 500)],
    ["answers 404", json("{}", 404)],
    ["answers 503 with nothing", json("", 503)],
    ["answers with something else", json('{"total":"many"}')],
    ["answers with no JSON", json("<html>")],
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
    await expect(statistics.read("promo")).rejects.toMatchObject({ code: "statistics-unavailable" });
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 1 });
  });

  test("that never come to their end are given up at the deadline, whatever garbage is collected meanwhile", async () => {
    setFlagsFromString("--expose_gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const baseUrl = await startIngest((_request, response) => void response.write('{"code":'));
    const statistics = createStatistics({ baseUrl, timeoutMs: 500 });
    const collector = setInterval(collectGarbage, 20);
    const reads = Array.from({ length: 32 }, () => statistics.read("promo"));
    for (const result of await Promise.allSettled(reads)) expect(result.status).toBe("rejected");
    clearInterval(collector);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 32 });
  });

  test("are asked for by 32 at a time; one more is refused without waiting for the others", async () => {
    const baseUrl = await startIngest(() => {});
    const statistics = createStatistics({ baseUrl, timeoutMs: 2000 });
    const waiting = Array.from({ length: 32 }, () => statistics.read("promo").catch((error: unknown) => error));
    await expect(statistics.read("promo")).rejects.toMatchObject({ code: "statistics-unavailable" });
    expect(statistics.stats()).toEqual({ underWay: 32, failures: 0 });
    await Promise.all(waiting);
    expect(statistics.stats()).toEqual({ underWay: 0, failures: 32 });
  });

  test("that begin to fail, and that succeed again, are told once each, with the network's own words", async () => {
    let healthy = false;
    const told: unknown[] = [];
    const baseUrl = await startIngest((_request, response) => {
      if (healthy) response.end('{"code":"promo","total":1}');
      else response.destroy();
    });
    const statistics = createStatistics({ baseUrl, timeoutMs: 5000, onChange: (cause) => told.push(cause) });
    for (healthy of [false, false, true, true, false]) await statistics.read("promo").catch(() => {});
    expect(told.map((cause) => (cause === undefined ? "well" : String(cause)))).toEqual([
      expect.stringMatching(/other side closed|socket hang up|ECONNRESET/),
      "well",
      expect.stringMatching(/other side closed|socket hang up|ECONNRESET/),
    ]);
  });
});
