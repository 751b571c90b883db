// What every answer of the service carries, and requests that are none, or could be meant for somebody else.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

/** Sends bytes as they are, and returns what comes back until the connection is gone. `half`: then closes this side. */
function exchange(text: string, { half = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(world.write.url);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let answer = "";
    socket.setEncoding("latin1").on("data", (chunk) => {
      answer += chunk;
    });
    socket.once("end", () => socket.end());
    socket.on("error", (error: NodeJS.ErrnoException) => error.code !== "ECONNRESET" && reject(error));
    socket.once("close", () => resolve(answer));
    if (half) socket.end(text, "latin1");
    else socket.write(text, "latin1");
  });
}

const bearer = () => `Authorization: Bearer ${world.adminKey}\r\n`;
const get = (line: string, fields: string) => `${line}\r\n${fields}${bearer()}Connection: close\r\n\r\n`;
const HOST = "Host: admin.example\r\n";

describe("a request", () => {
  test.each([
    ["with two Hosts", "GET /v1/links HTTP/1.1", "Host: a\r\nhost: b\r\n", "Host once"],
    ["with the same Host twice", "GET /v1/links HTTP/1.1", "Host: a\r\nHost: a\r\n", "Host once"],
    ["without a Host", "GET /v1/links HTTP/1.1", "", "Host once"],
    ["with an empty Host", "GET /v1/links HTTP/1.1", "Host: \r\n", "Host host"],
    ["with a path as Host", "GET /v1/links HTTP/1.1", "Host: a/b\r\n", "Host host"],
    ["with credentials in the Host", "GET /v1/links HTTP/1.1", "Host: a@b\r\n", "Host host"],
    ["with a list as Host", "GET /v1/links HTTP/1.1", "Host: a, b\r\n", "Host host"],
    ["with a word as port", "GET /v1/links HTTP/1.1", "Host: a:http\r\n", "Host host"],
    ["with bytes beyond ASCII as Host", "GET /v1/links HTTP/1.1", "Host: caf\xe9\r\n", "Host host"],
    ["with two keys", "GET /v1/links HTTP/1.1", `${HOST}Authorization: Bearer other\r\n`, "Authorization once"],
    [
      "with two media types",
      "POST /v1/links HTTP/1.1",
      `${HOST}Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n`,
      "Content-Type once",
    ],
    ["for a proxy", "GET http://admin.example/v1/links HTTP/1.1", HOST, "target path"],
    ["for a proxy, of another scheme", "GET ftp://x/v1/links HTTP/1.1", HOST, "target path"],
    ["about the whole server", "OPTIONS * HTTP/1.1", HOST, "target path"],
    ["with a fragment", "GET /v1/links#x HTTP/1.1", HOST, "target path"],
    ["of HTTP/0.9", "GET /v1/links HTTP/0.9", HOST, "version HTTP/1.1"],
    ["of HTTP/2.0", "GET /v1/links HTTP/2.0", HOST, "version HTTP/1.1"],
    [
      "with an unknown coding",
      "POST /v1/links HTTP/1.1",
      `${HOST}Transfer-Encoding: gzip, chunked\r\n`,
      "Transfer-Encoding chunked",
    ],
  ])("%s is refused, with what is wrong", async (_what, line, fields, fault) => {
    const answer = await exchange(get(line, fields));
    const [head = "", body = ""] = answer.split("\r\n\r\n", 2);
    expect(head).toMatch(/^HTTP\/1\.1 400 /);
    const [{ field, rule }] = JSON.parse(body).errors;
    expect(`${field} ${rule}`).toBe(fault);
    expect(head).toContain("Content-Security-Policy: default-src 'none'");
  });

  test.each([
    ["to be a tunnel", "CONNECT evil.example:443 HTTP/1.1", "Host: evil.example:443\r\n"],
    ["of HTTP/1.2", "GET /v1/links HTTP/1.2", HOST],
    ["of HTTP/3.0", "GET /v1/links HTTP/3.0", HOST],
    ["of HTTP/2 by its preface", "PRI * HTTP/2.0\r\n\r\nSM", ""],
    ["with a method in small letters", "get /v1/links HTTP/1.1", HOST],
    ["with raw bytes in the path", "GET /v1/links/caf\xe9 HTTP/1.1", HOST],
    ["with a field that goes on in a second line", "GET /v1/links HTTP/1.1", "Host: a\r\n b\r\n"],
    ["with a blank before the colon", "GET /v1/links HTTP/1.1", "Host : a\r\n"],
    ["with bare line feeds", "GET /v1/links HTTP/1.1\nHost: a\n\n", ""],
    ["with two lengths", "POST /v1/links HTTP/1.1", `${HOST}Content-Length: 1\r\nContent-Length: 2\r\n`],
    [
      "with a length and chunks",
      "POST /v1/links HTTP/1.1",
      `${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n`,
    ],
    ["with a length beyond all numbers", "POST /v1/links HTTP/1.1", `${HOST}Content-Length: ${"9".repeat(30)}\r\n`],
  ])("%s is no request, and answered without content", async (_what, line, fields) => {
    const answer = await exchange(get(line, fields));
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\nCache-Control: no-store\r\n/);
    expect(answer.endsWith("Content-Length: 0\r\n\r\n")).toBe(true);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test.each([
    ["path", (size: number) => `GET /${"a".repeat(size)} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`],
    ["query", (size: number) => `GET /v1/links?tag=${"a".repeat(size)} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`],
    ["header field", (size: number) => `GET / HTTP/1.1\r\n${HOST}X: ${"a".repeat(size)}\r\nConnection: close\r\n\r\n`],
    ["cookie", (size: number) => `GET / HTTP/1.1\r\n${HOST}Cookie: ${"a".repeat(size)}\r\nConnection: close\r\n\r\n`],
    [
      "number of fields",
      (size: number) => `GET / HTTP/1.1\r\n${HOST}${"a:\r\n".repeat(size)}Connection: close\r\n\r\n`,
    ],
  ])("may have a head of 8 KiB, %s and all, and one of more is 431", async (_what, head) => {
    expect(await exchange(head(7900))).toMatch(/^HTTP\/1\.1 4(?:01|04) /);
    expect(await exchange(head(8800))).toMatch(
      /^HTTP\/1\.1 431 Request Header Fields Too Large\r\nConnection: close\r\n/,
    );
  });

  test("of HTTP/1.0 needs no Host, and one that offers another protocol is answered in this one", async () => {
    expect(await exchange(get("GET /v1/links HTTP/1.0", ""))).toMatch(/^HTTP\/1\.1 200 /);
    const upgrade = `${HOST}Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n`;
    expect(await exchange(get("GET /v1/links HTTP/1.1", upgrade))).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a connection", () => {
  test("with several requests at once has their answers in order, up to the one that is none", async () => {
    const request = (path: string) => `GET ${path} HTTP/1.1\r\n${HOST}${bearer()}\r\n`;
    const sent = `${request("/v1/links?limit=1")}${request("/nothing")}${request("/v1/links/unknown1")}`;
    const answer = await exchange(`${sent}${request("/openapi.json")}nonsense\r\n\r\n`);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 404", "HTTP/1.1 200"]);
  });

  test("whose client has closed its side is given up, also within a body, and nothing is created twice", async () => {
    const before = (await world.linkCount()) ?? 0;
    const body = '{"target":"https://example.com/"}';
    const post = (length: number) =>
      `POST /v1/links HTTP/1.1\r\n${HOST}${bearer()}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
    expect(await exchange(post(body.length + 1), { half: true })).toMatch(/^(?:HTTP\/1\.1 400 |$)/);
    expect(await world.linkCount()).toBe(before);
    await exchange(post(body.length), { half: true });
    await exchange("GET /v1/li", { half: true });
    expect((await world.linkCount()) ?? 0).toBeLessThanOrEqual(before + 1);
    expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
  });
});

describe("every answer", () => {
  const HEADERS = {
    "content-security-policy": "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
  };

  test.each<[number, string, string, { type?: string; key?: string; body?: string }]>([
    [200, "GET", "/v1/links", {}],
    [200, "HEAD", "/v1/links", {}],
    [201, "POST", "/v1/links", { body: '{"target":"https://example.com/"}' }],
    [400, "POST", "/v1/links", { body: "{bad" }],
    [400, "GET", "/v1/links?surprise=1", {}],
    [400, "GET", "/v1/links/%zz", {}],
    [401, "GET", "/v1/links", { key: "nonsense" }],
    [404, "GET", "/nothing", {}],
    [405, "PUT", "/v1/links", {}],
    [413, "POST", "/v1/links", { body: " ".repeat(40_000) }],
    [415, "POST", "/v1/links", { type: "text/html", body: "<p>" }],
    [422, "POST", "/v1/links", { body: '{"target":"javascript:alert(1)"}' }],
    [503, "GET", "/v1/links/counted/stats", {}],
  ])("%d to %s %s tells browsers to do nothing with it, and its request's id", async (status, method, path, more) => {
    if (status === 503) await world.create({ target: "https://example.com/", alias: "counted" });
    const { type = "application/json", key = world.adminKey, body } = more;
    const headers = { Authorization: `Bearer ${key}`, "X-Request-Id": "my-id_1.2", "Content-Type": type };
    const answer = await world.raw(path, { method, headers, ...(body === undefined ? {} : { body }) });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({ ...HEADERS, "x-request-id": "my-id_1.2" });
    for (const name of ["x-powered-by", "server", "etag", "access-control-allow-origin", "set-cookie"])
      expect(answer.headers).not.toHaveProperty(name);
    if (status >= 400) expect(JSON.parse(answer.body).instance).toBe("urn:linkfence:request:my-id_1.2");
  });

  test("has an id of its own where the given one is none, and the given one where it is plain", async () => {
    const idFor = async (given?: string) => {
      const answer = await exchange(
        `GET /nothing HTTP/1.1\r\n${HOST}Connection: close\r\n${given === undefined ? "" : `X-Request-Id: ${given}\r\n`}\r\n`,
      );
      const [, id = ""] = /\r\nX-Request-Id: ([^\r]*)\r\n/.exec(answer) ?? [];
      expect(answer).toContain(`"instance":"urn:linkfence:request:${id}"`);
      return id;
    };
    const OWN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    for (const plain of ["a", "A-1_b.2", "x".repeat(128)]) expect(await idFor(plain)).toBe(plain);
    const odd = ["", "a b", 'a"b', "a\tb", "caf\xe9", "<script>", "a,b", "x".repeat(129), "../../etc", "%0d%0aX: y"];
    for (const given of [undefined, ...odd]) expect(await idFor(given)).toMatch(OWN);
    expect(await idFor()).not.toBe(await idFor());
  });
});
