import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { askedFor, codeInUrl } from "./path.ts";

describe("the code in a request target", () => {
  test.each([
    ["/abc", "abc"],
    ["/abc?", "abc"],
    ["/abc?utm=1", "abc"],
    ["/abc?a=1&a=2", "abc"],
    ["/abc/", "abc"],
    ["/abc/?x", "abc"],
    ["/A-b_9", "A-b_9"],
    [`/${"a".repeat(32)}`, "a".repeat(32)],
  ])("%s is %s", (url, code) => {
    expect(codeInUrl(url)).toBe(code);
  });

  test.each([
    ["/"],
    [""],
    ["abc"],
    ["/ab"],
    [`/${"a".repeat(33)}`],
    ["/abc//"],
    ["//abc"],
    ["/abc/x"],
    ["/abc&x=1"],
    ["/abc+"],
    ["/abc.txt"],
    ["/%61bc"],
    ["/a%00b"],
    ["/caf\u00e9"],
    ["/abc\u0080"],
    ["http://x/abc"],
    ["*"],
  ])("%s is no plain code", (url) => {
    expect(codeInUrl(url)).toBeNull();
  });

  test("is found exactly where the longhand finds one", () => {
    const characters = fc.constantFrom(..."abAZ09-_/?%+&#.é\u0000".split(""));
    const urls = fc.array(characters, { maxLength: 40 }).map((list) => `/${list.join("")}`);
    const longhand = (url: string) => /^\/([A-Za-z0-9_-]{3,32})\/?(?:\?.*)?$/s.exec(url)?.[1] ?? null;
    fc.assert(
      fc.property(urls, (url) => expect(codeInUrl(url)).toBe(longhand(url))),
      { numRuns: 2000 },
    );
  });
});

describe("anything else that a request may ask for", () => {
  test.each([
    ["/%61bc", { kind: "code", code: "abc" }],
    ["/%61bc/", { kind: "code", code: "abc" }],
    ["/abc+", { kind: "preview", code: "abc" }],
    ["/abc%2B", { kind: "preview", code: "abc" }],
    ["/abc+?x=1", { kind: "preview", code: "abc" }],
    ["/robots.txt", { kind: "file", name: "robots.txt" }],
    ["/favicon.ico", { kind: "file", name: "favicon.ico" }],
    ["/", { kind: "nothing" }],
    ["/%", { kind: "nothing" }],
    ["/%zz", { kind: "nothing" }],
    ["/%C0%80", { kind: "nothing" }],
    ["/a%E0%A4%A", { kind: "nothing" }],
    ["/a%00b", { kind: "nothing" }],
    ["/abc%2F", { kind: "nothing" }],
    ["/ab+", { kind: "nothing" }],
    [`/${"%61".repeat(500)}`, { kind: "nothing" }],
    ["/..%2f..%2fetc%2fpasswd", { kind: "nothing" }],
  ])("%s asks for %j", (url, asked) => {
    expect(askedFor(url)).toEqual(asked);
  });

  test("is never an error, whatever the path", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => expect(askedFor(`/${text}`).kind).toMatch(/^[a-z]+$/)),
    );
  });
});
