// Large, odd and slow bodies: bounded in bytes, and always answered.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { checkRaw, readMetric, until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  // What is large takes longer than usual where other tests run beside this one.
  world = await startApiWorld({ QUERY_TIMEOUT_MS: "10000" });
});
afterAll(() => world.stop());

const MAX_SINGLE = 32_768;
const MAX_BATCH = 10 * 1024 * 1024;
/** A body of exactly so many bytes: blanks behind JSON mean nothing. */
const padded = (value: unknown, bytes: number) => JSON.stringify(value).padEnd(bytes, " ");

async function post(path: string, body: string, headers: Record<string, string> = {}) {
  const all = world.authorized({ "Content-Type": "application/json", ...headers });
  const answer = await world.raw(path, { method: "POST", headers: all, body });
  return { status: answer.status, json: JSON.parse(answer.body) as Record<string, unknown> };
}

/** Writes a request for one link as it is, and returns all that comes back until the service closes the connection. */
async function exchange(bytes: Buffer): Promise<string> {
  const answer = await new Promise<string>((resolve, reject) => {
    const { hostname, port } = new URL(world.write.url);
    const socket = connect(Number(port), hostname);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("utf8");
    });
    socket.once("error", reject);
    socket.once("end", () => resolve(answer));
    socket.write(bytes);
  });
  return checkRaw("POST", "/v1/links", answer);
}

function rawRequest(body: Buffer, fields: string, path = "/v1/links"): Buffer {
  const { authorization } = Object.fromEntries(
    Object.entries(world.authorized()).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nConnection: close\r\n${fields}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

describe("a body for one link", () => {
  test("may have 32 KB to the byte, and one byte more is 413", async () => {
    const link = { target: "https://example.com/" };
    expect((await post("/v1/links", padded(link, MAX_SINGLE))).status).toBe(201);
    expect(await post("/v1/links", padded(link, MAX_SINGLE + 1))).toMatchObject({
      status: 413,
      json: { code: "payload-too-large" },
    });
  });

  test("holds the longest target with the longest title and all tags", async () => {
    const target = `https://example.com/${"a".repeat(8192 - 20)}`;
    const tags = Array.from({ length: 20 }, (_, n) => `${n}`.padEnd(50, "t"));
    const { status, json } = await post("/v1/links", JSON.stringify({ target, title: "é".repeat(200), tags }));
    expect([status, json.target]).toEqual([201, target]);
  });

  test("that does not say how long it is, is cut off at the same limit", async () => {
    const chunked = (bytes: number) => {
      const body = Buffer.from(padded({ target: "https://example.com/" }, bytes));
      const framed = Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
      return exchange(rawRequest(framed, "Transfer-Encoding: chunked"));
    };
    expect(await chunked(MAX_SINGLE)).toMatch(/^HTTP\/1\.1 201 /);
    expect(await chunked(MAX_SINGLE + 1)).toMatch(/^HTTP\/1\.1 413 /);
    // Far beyond the limit over a kept connection: one that is to be closed may be gone before all of it is sent.
    const headers = world.authorized({ "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
    const body = padded({ target: "https://example.com/" }, MAX_BATCH);
    expect((await world.raw("/v1/links", { method: "POST", headers, body })).status).toBe(413);
  });

  test.each<[string, Buffer, number]>([
    ["plain", Buffer.from('{"target":"https://example.com/é"}'), 201],
    ["with a byte order mark", Buffer.from('\ufeff{"target":"https://example.com/"}'), 201],
    ["in Latin-1", Buffer.from('{"target":"https://example.com/é"}', "latin1"), 400],
    ["with an overlong NUL", Buffer.from('{"target":"https://example.com/\xc0\x80"}', "latin1"), 400],
    ["of blanks", Buffer.from("   "), 400],
  ])("%s is judged as it stands", async (_what, body, status) => {
    const answer = await exchange(rawRequest(body, `Content-Length: ${body.length}`));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test("that ends before its declared length is no creation", async () => {
    const before = await world.linkCount();
    const body = Buffer.from('{"target":"https://example.com/"}');
    const { hostname, port } = new URL(world.write.url);
    const socket = connect(Number(port), hostname);
    socket.end(rawRequest(body, `Content-Length: ${body.length + 1}`));
    socket.resume();
    await once(socket, "close");
    expect(await world.linkCount()).toBe(before);
  });
});

describe("a batch", () => {
  test("of a thousand targets of full size is created and answered whole", async () => {
    const links = Array.from({ length: 1000 }, (_, n) => ({
      target: `https://example.com/${String(n).padEnd(8192 - 20, "a")}`,
    }));
    const { status, json } = await post("/v1/links:batch", JSON.stringify({ links }));
    const results = json.results as { status: number; link: { target: string } }[];
    expect(status).toBe(200);
    expect(results.map(({ link }) => link.target)).toEqual(links.map(({ target }) => target));
    expect(results.every((result) => result.status === 201)).toBe(true);
  });

  test("of more than 10 MB is 413", async () => {
    const body = padded({ links: [{ target: "https://example.com/" }] }, MAX_BATCH + 1);
    expect((await post("/v1/links:batch", body)).status).toBe(413);
  });

  test("that does not fit beside the others is 503 at once, and fits again when they are done", async () => {
    const reserved = () => readMetric(world.write, "linkfence_batch_bytes");
    const untilReserved = async (bytes: number) => {
      await until(async () => (await reserved()) === bytes);
    };
    const { hostname, port } = new URL(world.write.url);
    const others = Array.from({ length: 6 }, () => {
      const socket = connect(Number(port), hostname).on("error", () => {});
      socket.write(rawRequest(Buffer.alloc(0), `Content-Length: ${MAX_BATCH}`, "/v1/links:batch"));
      return socket;
    });
    await untilReserved(6 * MAX_BATCH);
    const body = padded({ links: [{ target: "https://example.com/" }] }, MAX_BATCH);
    expect(await post("/v1/links:batch", body)).toMatchObject({ status: 503, json: { code: "overloaded" } });
    expect((await post("/v1/links:batch", body.trimEnd())).status).toBe(200);
    expect(await readMetric(world.write, "linkfence_batches_refused_total")).toBe(1);
    for (const socket of others) socket.destroy();
    await untilReserved(0);
    expect((await post("/v1/links:batch", body)).status).toBe(200);
  });
});

test("what happened is counted by route and kind, and no path that anybody chose becomes a label", async () => {
  await world.raw("/v1/links/surprise-code", { headers: world.authorized() });
  await world.raw("/surprise-path", {});
  const page = await (await fetch(`${world.write.opsUrl}/metrics`)).text();
  expect(page).toContain('linkfence_requests_total{route="GET /v1/links/:code",status="4xx"} 1');
  expect(page).not.toContain("surprise");
  expect(await readMetric(world.write, 'linkfence_links_created_total{kind="RANDOM"}')).toBe(await world.linkCount());
});
