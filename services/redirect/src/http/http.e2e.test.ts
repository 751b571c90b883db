// The redirect's answers, byte by byte, from a real process on a real database.
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type RunningService,
  readMetric,
  startService,
  type TestDatabase,
  until,
  waitUntilReady,
} from "@linkfence/testkit";

let database: TestDatabase;
let redirect: RunningService;
let ingest: Server;
const http = createHttpClient();
/** Codes of the clicks that reached the ingest. */
const clicked: string[] = [];

const HOSTILE = "https://example.com/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E?a='b'&c=<d>";

beforeAll(async () => {
  database = await createTestDatabase("main");
  ingest = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { clicks } = JSON.parse(Buffer.concat(chunks).toString()) as { clicks: { code: string }[] };
    clicked.push(...clicks.map(({ code }) => code));
    const result = { received: clicks.length, inserted: clicks.length, duplicate: 0, refused: 0 };
    response.setHeader("Content-Type", "application/json").end(JSON.stringify(result));
  });
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  const CLICK_INGEST_URL = `http://127.0.0.1:${(ingest.address() as AddressInfo).port}`;
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at) VALUES
    ('abc', 'https://example.com/?abc#123', 'ann', 'ALIAS', 'k', NULL),
    ('cold', 'https://example.com/cold', 'ann', 'ALIAS', 'k', NULL),
    ('counted', 'https://example.com/', 'ann', 'ALIAS', 'k', NULL),
    ('hostile', ${HOSTILE}, 'ann', 'ALIAS', 'k', NULL),
    ('gone', 'https://example.com/gone', 'ann', 'ALIAS', 'k', NULL),
    ('expired', 'https://example.com/expired', 'ann', 'ALIAS', 'k', now() - interval '1 second')`;
  await database.sql`SELECT * FROM revoke_links(ARRAY['gone'], 'ann', 'k')`;
  redirect = await startService("redirect", { DATABASE_URL: database.url, CLICK_INGEST_URL, DEBUG_ENTRY_AGE: "true" });
  await waitUntilReady(redirect);
});
afterAll(async () => {
  http.close();
  await redirect.stop();
  await new Promise((resolve) => ingest.close(resolve));
  await database.drop();
});

const get = (path: string, method = "GET", headers: Record<string, string> = {}) =>
  http.send(redirect.url, path, { method, headers });

/** Sends bytes as they are and returns what comes back until the end. */
function exchange(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(new URL(redirect.url).port), "127.0.0.1", () => socket.write(text, "latin1"));
    socket.setEncoding("latin1").on("data", (chunk) => {
      answer += chunk;
    });
    socket.once("error", reject).once("close", () => resolve(answer));
  });
}

describe("an active link", () => {
  test.each(["/abc", "/abc?", "/abc?utm=1", "/abc?a=1&a=2", "/abc/", "/%61bc"])(
    "at %s leads to its target, byte for byte",
    async (path) => {
      for (const method of ["GET", "HEAD"]) {
        const { status, headers, body } = await get(path, method);
        expect([status, headers.location, headers["cache-control"], body]).toEqual([
          302,
          "https://example.com/?abc#123",
          "no-store",
          "",
        ]);
      }
    },
  );

  test.each(["/abc//", "//abc", "/abc/x", "/abc&x=1", "/ABC", "/abc%2F", "/abc.txt"])(
    "is not found at %s",
    async (path) => {
      const { status, headers } = await get(path);
      expect([status, headers["cache-control"], headers.location]).toEqual([404, "no-store", undefined]);
    },
  );

  test("tells how old the entry is that the answer rests on, where that is asked for", async () => {
    await get("/abc");
    const { headers } = await get("/abc");
    expect(Number(headers["x-entry-age-ms"])).toBeGreaterThan(0);
  });

  test("answers the same from memory and from the database", async () => {
    const strip = ({ status, headers: { location, "cache-control": cache } }: Awaited<ReturnType<typeof get>>) => [
      status,
      location,
      cache,
    ];
    const [cold, warm] = [await get("/cold/"), await get("/cold")];
    expect(strip(cold)).toEqual(strip(warm));
    expect(strip(cold)).toEqual([302, "https://example.com/cold", "no-store"]);
  });
});

describe("other answers", () => {
  test.each([
    ["/gone", 410],
    ["/expired", 410],
    ["/unknown", 404],
    ["/", 404],
    ["/favicon.ico", 404],
    ["/robots.txt", 200],
    ["/%", 404],
    ["/%zz", 404],
    ["/%C0%80", 404],
    ["/a%E0%A4%A", 404],
    ["/a%00b", 404],
    ["/%0d%0a%7B%22level%22:%22error%22%7D", 404],
    [`/${"a".repeat(5000)}`, 404],
    ["/abc+", 200],
    ["/gone+", 410],
    ["/expired+", 410],
    ["/unknown+", 404],
  ])("%s is %d, for GET and HEAD, and kept by no cache", async (path, expected) => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await get(path, method);
      expect([method, status, headers["cache-control"], headers.location]).toEqual([
        method,
        expected,
        "no-store",
        undefined,
      ]);
    }
  });

  test.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])(
    "%s is refused before anything is looked up, with what is allowed, and echoes nothing",
    async (method) => {
      const loads = await readMetric(redirect, "linkfence_loads_total");
      for (const path of ["/abc", "/never-seen", "/abc+", "/"]) {
        const { status, headers, body } = await get(path, method, { "X-Echo": "echo-me" });
        expect([status, headers.allow, headers["cache-control"]]).toEqual([405, "GET, HEAD", "no-store"]);
        expect(body).not.toContain("echo-me");
      }
      expect(await readMetric(redirect, "linkfence_loads_total")).toBe(loads);
    },
  );

  test("are pages for a person and one line for a program", async () => {
    const page = await get("/unknown", "GET", { Accept: "text/html,application/xhtml+xml" });
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(page.body).toContain("<h1>No such link</h1>");
    const line = await get("/unknown");
    expect(line.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(line.body.trim().split("\n")).toHaveLength(1);
    expect(page.headers.vary).toBe("Accept");
  });

  test("show where a link leads without going there, as text alone", async () => {
    expect((await get("/hostile+")).body).toBe(`${HOSTILE}\n`);
    const page = await get("/hostile+", "GET", { Accept: "text/html" });
    expect(page.body).not.toMatch(/<img|<d>/);
    expect(page.body).toContain("&lt;d&gt;");
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  });

  test("need no query for what cannot be a code", async () => {
    const loads = await readMetric(redirect, "linkfence_loads_total");
    for (const path of ["/favicon.ico", "/robots.txt", "/a%00b", "/ab", "/%"]) await get(path);
    expect(await readMetric(redirect, "linkfence_loads_total")).toBe(loads);
  });
});

describe("unusual requests", () => {
  test.each([
    ["with two Hosts", "GET /abc HTTP/1.1\r\nHost: x\r\nhost: y\r\nConnection: close\r\n\r\n", 400],
    ["without a Host", "GET /abc HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
    ["with a Host that is none", "GET /abc HTTP/1.1\r\nHost: x/y@z\r\nConnection: close\r\n\r\n", 400],
    ["with an empty Host", "GET /abc HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 400],
    ["for the whole server", "GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400],
    ["to be a tunnel", "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n", 400],
    ["of HTTP/0.9", "GET /abc HTTP/0.9\r\nHost: x\r\n\r\n", 400],
    ["of HTTP/2.0", "GET /abc HTTP/2.0\r\nHost: x\r\nConnection: close\r\n\r\n", 400],
    ["of HTTP/2 by its preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    ["for another server", "GET http://other.example/abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400],
    ["of HTTP/1.0 without a Host", "GET /abc HTTP/1.0\r\n\r\n", 302],
    ["with raw bytes in the path", "GET /caf\xe9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400],
    ["with a header block that is too large", `GET /abc HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(9000)}\r\n\r\n`, 431],
    ["that are no requests", "\x16\x03\x01\r\n\r\n", 400],
    [
      "that expect what nobody knows",
      "GET /abc HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n",
      302,
    ],
  ])("%s are answered in our own words, and kept by no cache", async (_what, text, status) => {
    const answer = await exchange(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer.toLowerCase()).toContain("cache-control: no-store");
    expect(answer).not.toMatch(/at .*\.js|Error:/);
  });

  test("with a body that is none, for a link that is not in memory, end with one answer, and the process goes on", async () => {
    const answer = await exchange("GET /cold-1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 (?:400|404) /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect((await get("/abc")).status).toBe(302);
  });

  test("sent one behind the other on one connection are each answered, in order", async () => {
    const answer = await exchange(
      "GET /abc HTTP/1.1\r\nHost: x\r\n\r\nGET /gone HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    expect([...answer.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).toEqual(["302", "410"]);
  });

  test("leave no line in the log that we did not write", () => {
    for (const line of redirect.output().split("\n").filter(Boolean)) expect(JSON.parse(line).service).toBe("redirect");
    expect(redirect.records().filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("clicks", () => {
  test("are counted for a GET that was answered with a redirect, and for nothing else", async () => {
    for (const method of ["HEAD", "HEAD", "HEAD", "GET", "POST"]) await get("/counted", method);
    for (const path of ["/counted+", "/gone", "/expired", "/unknown", "/robots.txt"]) await get(path);
    await until(async () => (await readMetric(redirect, "linkfence_clicks_in_flight")) === 0);
    expect(clicked.filter((code) => code === "counted")).toHaveLength(1);
    expect(clicked.filter((code) => !["abc", "cold", "counted"].includes(code))).toEqual([]);
  });
});
