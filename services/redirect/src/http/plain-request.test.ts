import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createPlainReader } from "./plain-request.ts";

const read = createPlainReader(["X_Country", "CF-Connecting-IP"]);
const readText = (text: string) => read(Buffer.from(text, "latin1"));
/** A request with these lines behind its first one. */
const request = (lines: readonly string[], first = "GET /abc HTTP/1.1") => [first, ...lines, "", ""].join("\r\n");

describe("a plain request", () => {
  test.each<[string, string, readonly string[]]>([
    ["with nothing but its host", request(["Host: x"]), []],
    ["to a port", request(["host:go.example:8080"]), []],
    ["with a slash and a query", request(["Host: x"], "GET /abc/?a=%20&b[0]=1;c@d HTTP/1.1"), []],
    ["that keeps its connection", request(["Host: x", "CONNECTION: Keep-Alive"]), []],
    ["with fields that nobody asks for", request(["Host: x", "Cookie: a=b", 'Sec-CH-UA: "C";v="1"', "X:"]), []],
    [
      "with fields of its visitor, in any letters and with any blanks",
      request(["Referer: https://a.example/ b", "Host: x", "USER-agent:\t Mozilla/5.0 \t ", "Accept:", "Accept: */*"]),
      ["referer", "https://a.example/ b", "user-agent", "Mozilla/5.0", "accept", "", "accept", "*/*"],
    ],
    [
      "with fields that fetch ahead, or that a proxy has put there",
      request([
        "Sec-Purpose: prefetch",
        "purpose: a",
        "X-Purpose: b",
        "X-Moz: c",
        "x_country: NZ",
        "Cf-Connecting-Ip: ::1",
        "Host: x",
      ]),
      [
        "sec-purpose",
        "prefetch",
        "purpose",
        "a",
        "x-purpose",
        "b",
        "x-moz",
        "c",
        "x_country",
        "NZ",
        "cf-connecting-ip",
        "::1",
      ],
    ],
  ])("%s is read", (_what, text, rawHeaders) => expect(readText(text)).toEqual({ code: "abc", rawHeaders }));

  test("of the largest size that Node takes is read, and no larger one", () => {
    const sized = (size: number) => {
      const bare = request(["Host: x", "X: "]);
      return readText(request(["Host: x", `X: ${"a".repeat(size - bare.length)}`]));
    };
    expect(sized(8192)?.code).toBe("abc");
    expect(sized(8193)).toBeNull();
  });
});

describe("what is left to Node's parser", () => {
  const host = ["Host: x"];
  test.each<[string, string]>([
    ["nothing at all", ""],
    ["another method", request(host, "HEAD /abc HTTP/1.1")],
    ["a method in small letters", request(host, "get /abc HTTP/1.1")],
    ["two blanks", request(host, "GET  /abc HTTP/1.1")],
    ["a version without keep-alive", request(host, "GET /abc HTTP/1.0")],
    ["a version that is none", request(host, "GET /abc HTTP/1.10")],
    ["no version", request(host, "GET /abc")],
    ["what is no link", request(host, "GET /robots.txt HTTP/1.1")],
    ["a preview", request(host, "GET /abc+ HTTP/1.1")],
    ["an escaped code", request(host, "GET /%61bc HTTP/1.1")],
    ["a whole URL", request(host, "GET http://x/abc HTTP/1.1")],
    ["a fragment", request(host, "GET /abc#x HTTP/1.1")],
    ["a query with letters that stand in none", request(host, "GET /abc?{} HTTP/1.1")],
    ["no Host", request(["X: x"])],
    ["two Hosts", request(["Host: x", "Host: x"])],
    ["an empty Host", request(["Host:"])],
    ["a Host that is none", request(["Host: x/y"])],
    ["a Host of IPv6", request(["Host: [::1]"])],
    ["a wish to close", request([...host, "Connection: close"])],
    ["more than one wish", request([...host, "Connection: keep-alive, x"])],
    ["a wish of the same length", request([...host, "Connection: keep_alive"])],
    ["a length", request([...host, "Content-Length: 0"])],
    ["a coding", request([...host, "Transfer-Encoding: chunked"])],
    ["an expectation", request([...host, "Expect: 100-continue"])],
    ["another protocol", request([...host, "Upgrade: websocket"])],
    ["trailers", request([...host, "Trailer: x"])],
    ["a word for proxies", request([...host, "Proxy-Connection: close"])],
    ["a line without a colon", request([...host, "abc"])],
    ["a field without a name", request([...host, ": x"])],
    ["a blank before a colon", request([...host, "X : x"])],
    ["a folded line", request([...host, " x"])],
    ["a control character in a value", request([...host, "X: \x01"])],
    ["a letter beyond ASCII in a value", request([...host, "X: \xe9"])],
    ["lines without a carriage return", request(host).replaceAll("\r", "")],
    ["a carriage return alone", `${request(host)}`.replace("x\r\n", "x\r")],
    ["half of a request", request(host).slice(0, -2)],
    ["all but the last byte", request(host).slice(0, -1)],
    ["two requests", request(host) + request(host)],
    ["a byte behind it", `${request(host)}a`],
    ["a line end before it", `\r\n${request(host)}`],
  ])("is %s", (_what, text) => expect(readText(text)).toBeNull());

  test("is also a field that changes the connection, where it is wanted of a request", () => {
    const reader = createPlainReader(["Connection", "Expect", "HOST"]);
    const text = (line: string) => Buffer.from(request([...host, line]));
    expect(reader(text("Connection: close"))).toBeNull();
    expect(reader(text("Expect: x"))).toBeNull();
    expect(reader(text("X: x"))).toEqual({ code: "abc", rawHeaders: [] });
  });

  test("is any bytes that are no request, and none of them is an error", () => {
    const piece = fc.constantFrom(
      "GET /",
      "abc",
      " HTTP/1.1",
      "\r\n",
      "Host: x",
      ":",
      " ",
      "\x00",
      "\xff",
      "Expect",
      "?",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        const plain = readText(text);
        expect(plain === null || /^GET \/abc[^ ]* HTTP\/1\.1\r\n([^\r\n]+\r\n)*\r\n$/.test(text)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
