// The front for plain requests must not be noticed: with it and without it the same bytes are answered, to whatever is sent,
// and the same clicks are counted.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { codeInUrl } from "../domain/path.ts";
import type { PlainReader } from "./plain-request.ts";
import { type PlainWorld, startPlainWorld } from "./plain-world.fixture.ts";

const RUNS = 400;
const LAST = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/** Most of what is drawn is usual, so that many a request is unusual in one way alone. */
const mostly = (usual: string, ...others: string[]) =>
  fc.oneof({ weight: 40, arbitrary: fc.constant(usual) }, { weight: 3, arbitrary: fc.constantFrom(...others) });

const method = mostly("GET", "HEAD", "get", "POST", "OPTIONS", "G\x00T");
const target = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("/abc", "/gone", "/unknown", "/expired", "/long", "/abc/") },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      ...["/abc?x=1", "/abc?", "/abc?a=%20&b[]=;@", "/abc?{x}", "/abc?x|y", "/abc?\xe9", '/abc?"<>^`\\', "/abc#x"],
      ...["/abc+", "/%61bc", "//abc", "/ab", "/", "/robots.txt", "http://x/abc", "*", "abc", "/abc?x y", "/a\x7fbc"],
      `/abc?${"a".repeat(8200)}`,
    ),
  },
);
const version = mostly("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "http/1.1", "HTTP/1.1 ", "");
const lineEnd = mostly("\r\n", "\n", "\r", "\r\r\n");
const host = mostly("x", "x:80", "go.example", "[::1]", "", "x/y", "a b", "x:1234567", "x_y", "x,y", "\xe9");
const text = fc.string({ unit: fc.constantFrom(..."aZ09-_ \t,;=/\"'\xe9\x01\x7f"), maxLength: 12 });
const field = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("User-Agent: Mozilla/5.0", "accept: text/html,*/*", "ACCEPT:*/*") },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      ...["Referer: https://a.example/b?c", "referer:  https://two.example \t", "Referer:", "Sec-Purpose: prefetch"],
      ...["purpose: preview", "X-Moz: prefetch", "X-Purpose:\tprefetch", "X_Country: NZ", "x_country: DE, US"],
      ...["X-Forwarded-For: 192.0.2.1, 192.0.2.9", "x-forwarded-for: 198.51.100.7", "Connection: keep-alive"],
      ...["connection: Keep-Alive", "Cookie: a=b; c=d", 'sec-ch-ua: "Chromium";v="131"', "DNT: 1"],
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...["Connection: close", "Connection: keep-alive, close", "Connection: upgrade", "Connection:"],
      ...["Content-Length: 0", "Content-Length: 3", "Content-Length: x", "Transfer-Encoding: chunked", "Trailer: x"],
      ...["Transfer-Encoding: gzip", "Expect: 100-continue", "Expect: miracles", "Upgrade: websocket"],
      ...["Proxy-Connection: close", "Host: y", "no colon", ": no name", "a b: c", " folded", "x : y", "\xe9: x"],
      `X: ${"a".repeat(8300)}`,
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom("X", "Accept", "User-Agent", "Referer"), text).map((p) => p.join(":")),
  },
);
const behind = mostly("", "\r\n", "x", "GET /abc HTTP/1.1\r\nHost: x\r\n\r\n", "\x00");
const request = fc
  .record({
    method,
    target,
    version,
    lineEnd,
    host: fc.option(host, { freq: 12 }),
    fields: fc.array(field, { maxLength: 6 }),
    behind,
  })
  .map(
    ({ method, target, version, lineEnd, host, fields, behind }) =>
      [`${method} ${target} ${version}`, ...(host === null ? [] : [`Host: ${host}`]), ...fields, "", ""].join(lineEnd) +
      behind,
  );
/** Some requests, each whole or in two pieces. */
const visit = fc.array(
  fc.record({ request, cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { freq: 3 }) }),
  {
    minLength: 1,
    maxLength: 4,
  },
);
type Visit = typeof visit extends fc.Arbitrary<infer T> ? T : never;

function piecesOf(visit: Visit): string[] {
  return visit.flatMap(({ request, cut }) => {
    const at = cut === null ? request.length : Math.floor(cut * request.length);
    return [request.slice(0, at), request.slice(at)].filter((piece) => piece !== "");
  });
}

/** What comes back, and which clicks it made. Of the date, which is that of the moment, only the form counts. */
async function seen(world: PlainWorld, visit: Visit) {
  const connection = await world.open();
  for (const piece of [...piecesOf(visit), LAST]) await connection.send(piece);
  const bytes = await connection.all();
  return {
    bytes: bytes.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/gm, "Date"),
    clicks: world.takeClicks(),
  };
}

describe("the front for plain requests", () => {
  let [bare, front]: (PlainWorld | undefined)[] = [];
  beforeAll(async () => {
    [bare, front] = [await startPlainWorld({ read: null }), await startPlainWorld()];
  });
  afterAll(async () => {
    await Promise.all([bare?.close(), front?.close()]);
  });

  test("answers byte for byte what Node's server would, and counts the same clicks", async () => {
    const [one, other] = [bare as PlainWorld, front as PlainWorld];
    await fc.assert(
      fc.asyncProperty(visit, async (visit) => expect(await seen(other, visit)).toEqual(await seen(one, visit))),
      { numRuns: RUNS },
    );
    // Both kinds of answers were among them.
    const { redirect, "not-found": unknown } = other.counts();
    expect([redirect > RUNS / 4, unknown > RUNS / 4, other.plain.stats().passedOn > RUNS / 4]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("control: one that reads no more than the first line, and a wish to close, is noticed", async () => {
    const lax: PlainReader = (bytes) => {
      if (bytes.includes("Connection: close")) return null;
      const code = codeInUrl(/^GET (\S+) HTTP\/1\.1\r\n/.exec(bytes.toString("latin1"))?.[1] ?? "");
      return code === null ? null : { code, rawHeaders: [] };
    };
    const careless = await startPlainWorld({ read: lax });
    try {
      const outcome = await fc.check(
        fc.asyncProperty(visit, async (visit) => {
          const [got, wanted] = [await seen(careless, visit), await seen(bare as PlainWorld, visit)];
          return JSON.stringify(got) === JSON.stringify(wanted);
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
      expect(outcome.failed).toBe(true);
    } finally {
      await careless.close();
    }
  });
});
