// The statistics route, with a click-ingest that the test controls.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let ingest: Server;
let world: ApiWorld;
const asked: string[] = [];
let answer = (response: ServerResponse) => void response.end();

beforeAll(async () => {
  ingest = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(response);
  });
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  const { port } = ingest.address() as AddressInfo;
  world = await startApiWorld({ CLICK_INGEST_URL: `http://127.0.0.1:${port}` });
  await world.create({ target: "https://example.com/", alias: "measured" });
});
afterAll(async () => {
  await world.stop();
  ingest.closeAllConnections();
  ingest.close();
});

test("an owner is told the clicks of a link, also of a revoked one", async () => {
  answer = (response) => void response.end('{"code":"measured","total":41}');
  const expected = { status: 200, json: { code: "measured", total: 41 } };
  expect(await world.api("GET", "/v1/links/measured/stats")).toEqual(expected);
  await world.api("DELETE", "/v1/links/measured");
  expect(await world.api("GET", "/v1/links/measured/stats")).toEqual(expected);
});

test("about a link that is not the caller's, click-ingest is not even asked", async () => {
  asked.length = 0;
  const bob = await world.addKey("bob", ["stats:read"]);
  const paths = ["/v1/links/measured/stats", "/v1/links/no-such-code/stats", "/v1/links/a%2F..%2Fb/stats"];
  for (const path of paths) expect((await world.api("GET", path, undefined, bob)).status).toBe(404);
  expect(asked).toEqual([]);
});

test("a click-ingest that hangs is a 503 of this route, within its deadline, while every other route answers", async () => {
  const hanging: ServerResponse[] = [];
  answer = (response) => void hanging.push(response);
  const reads = Array.from({ length: 20 }, () => world.api("GET", "/v1/links/measured/stats"));
  await until(() => hanging.length >= 20);
  expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
  expect((await world.api("GET", "/v1/links/measured")).status).toBe(200);
  for (const { status, json } of await Promise.all(reads))
    expect([status, json.code]).toEqual([503, "statistics-unavailable"]);
  answer = (response) => void response.end('{"code":"measured","total":42}');
  expect((await world.api("GET", "/v1/links/measured/stats")).json.total).toBe(42);
  const told = world.write.records().filter(({ message }) => message.startsWith("statistics can"));
  expect(told.map(({ message }) => message)).toEqual(["statistics cannot be read", "statistics can be read again"]);
});
