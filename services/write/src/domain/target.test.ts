import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { decideTarget, ownHostOf, type TargetRules } from "./target.ts";

const rules: TargetRules = { ownHosts: [ownHostOf("https://sho.example")], privateHosts: "allow" };
const strict: TargetRules = { ...rules, privateHosts: "deny" };
const hrefOf = (text: string, by = rules) => {
  const decision = decideTarget(text, by);
  return decision.ok ? decision.href : decision.rule;
};
const A2100 = "a".repeat(2100);

describe("a target that differs from its canonical form by spelling alone is accepted", () => {
  test.each([
    ["https://example.com", "https://example.com/"],
    ["HTTPS://Example.COM/Path?Q=1#Frag", "https://example.com/Path?Q=1#Frag"],
    ["https://example.com:443/a", "https://example.com/a"],
    ["http://example.com:443/a", "http://example.com:443/a"],
    ["https://example.com:65535/", "https://example.com:65535/"],
    ["https://example.com:/", "https://example.com/"],
    ["https://example.com/a b?c d#e f", "https://example.com/a%20b?c%20d#e%20f"],
    ["https://bücher.example/straße?q=ü", "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC"],
    ["https://☃.example/", "https://xn--n3h.example/"],
    ["https://example.com/😀?x=😀#😀", "https://example.com/%F0%9F%98%80?x=%F0%9F%98%80#%F0%9F%98%80"],
    ["http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080/x"],
    ["https://example.com/a/./b/../c", "https://example.com/a/c"],
    [
      'https://example.com/"><img src=x onerror=alert(1)>',
      "https://example.com/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    ],
    ["https://example.com/é", "https://example.com/%C3%A9"],
    [`https://example.com/${A2100}`, `https://example.com/${A2100}`],
    ["https://example.com/a\\b?c\\d", "backslash"],
    ["https://example.com/?c\\d", "https://example.com/?c\\d"],
  ])("%s is %s", (text, href) => {
    expect(hrefOf(text)).toBe(href);
  });

  test.each([
    "https://example.com/?abc#123",
    "https://example.com/?a&b=&=c",
    "https://example.com/?a=1&a=2",
    "https://example.com/??x",
    "https://example.com/r?u=https%3A%2F%2Fx.example%2F%3Fa%3D1%2526b%3D2&m=a%2Bb%40c.example",
    "https://example.com/a%2Fb",
    "https://example.com/?",
    "https://example.com/#",
    "https://example.com/?#",
    "https://example.com/#a#b",
    "https://example.com//a//",
    "https://example.com/?q={x}",
  ])("%s is kept byte for byte", (text) => {
    expect(hrefOf(text)).toBe(text);
  });
});

describe("a target that the parser had to delete or reinterpret something of is refused", () => {
  test.each([
    ["unparsable", ["https://example.com:65536/", "https://example.com:99999/", "https://example.com:8 0/"]],
    ["unparsable", ["https://example.com:-1/", "https://example.com:b/", "https://", "https://?q", "https://#x"]],
    ["unparsable", ["//example.com/a", "/a", "example.com", "www.example.com/a", "", "https://exa mple.com/"]],
    ["unparsable", ["http://[::1", "http://::1/", "http://[]", "http://[fe80::1%25eth0]/", "http://192.168.0.257/"]],
    ["unparsable", ["http://1.2.3.4.5/", "http://256.1.1.1/", "https:///", 'http;//" onmousemove="alert(1)']],
    ["slashes", ["http:example.com", "https:/example.com", "https:///example.com", "https:////example.com"]],
    ["outer-blank", [" https://example.com/", "https://example.com/ ", "   ", "\u00a0https://example.com/"]],
    [
      "control-character",
      ["https://exam\tple.com/", "https://example.com/a\r\nSet-Cookie:x=1", "https://example.com/x\u0000"],
    ],
    ["control-character", ["https://example.com/\u0085", "https://example.com/\u001b[31m", "\nhttps://example.com/"]],
    ["backslash", ["https:\\\\example.com\\a", "https:/\\example.com", "https://example.com\\@evil.example/"]],
    ["scheme", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,<b>x", "data:,x", "file:///secret.txt"]],
    ["scheme", ["ftp://example.com/", "mailto:a@example.com", "about:blank", "blob:https://example.com/1"]],
    ["scheme", ["ws://example.com/", "intent://example.com/#Intent;end"]],
    ["surrogate", ["https://example.com/\ud800", "https://example.com/?q=\udfff"]],
  ])("(%s): %j", (rule, texts) => {
    expect(texts.map((text) => hrefOf(text))).toEqual(texts.map(() => rule));
  });

  test.each([
    ["credentials", "https://user:pw@example.com/"],
    ["an authority that only looks like another host", "https://example.com@evil.example/"],
    ["empty credentials", "https://@example.com/"],
    ["an escape in the host", "https://ex%61mple.com/"],
    ["a soft hyphen in the host", "https://exam\u00adple.com/"],
    ["a zero-width space in the host", "https://exam\u200bple.com/"],
    ["full-width letters in the host", "https://ｅｘａｍｐｌｅ.com/"],
    ["an ideographic full stop in the host", "https://example。com/"],
    ["a hexadecimal address", "http://0x7f.1/"],
    ["a decimal address", "http://2130706433/"],
    ["a short address", "http://127.1/"],
    ["an octal address", "http://010.0.0.1/"],
    ["an empty first label", "http://.example.com/"],
    ["an empty label", "http://example..com/"],
  ])("(%s)", (_what, text) => {
    expect(decideTarget(text, rules).ok).toBe(false);
  });

  test("when it is longer than 8,192 bytes in its canonical form", () => {
    const longest = `https://example.com/${"a".repeat(8192 - 20)}`;
    expect(hrefOf(longest)).toBe(longest);
    expect(hrefOf(`${longest}a`)).toBe("length");
    expect(hrefOf(`https://example.com/${"ü".repeat(1400)}`)).toBe("length");
  });
});

describe("a target on an own public host is refused", () => {
  test.each([
    "https://sho.example/b",
    "https://sho.example",
    "http://sho.example/",
    "https://sho.example:8443/",
    "https://SHO.example/",
    "https://sho.example./",
  ])("%s", (text) => {
    expect(hrefOf(text)).toBe("own-host");
  });

  test("and a longer name that ends alike is not", () => {
    expect(hrefOf("https://notsho.example/")).toBe("https://notsho.example/");
    expect(hrefOf("https://go.sho.example/")).toBe("https://go.sho.example/");
  });

  test("on a developer's machine, only with its own port", () => {
    const local: TargetRules = { ownHosts: [ownHostOf("http://127.0.0.1:7000")], privateHosts: "allow" };
    expect(hrefOf("http://localhost:7000/x", local)).toBe("own-host");
    expect(hrefOf("http://127.0.0.1:3000/", local)).toBe("http://127.0.0.1:3000/");
  });
});

describe("private hosts", () => {
  const hosts = [
    ...["127.0.0.1", "127.8.9.1", "10.0.0.5", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"],
    ...["0.0.0.0", "100.64.0.1", "[::1]", "[::]", "[fd00::1]", "[fe80::1]", "[::ffff:127.0.0.1]", "[::ffff:a00:5]"],
    ...["localhost", "LOCALHOST", "localhost.", "sub.localhost", "127.0.0.1."],
  ];

  test.each(hosts)("such as %s are refused in every spelling where the switch says so", (host) => {
    expect(decideTarget(`http://${host}/`, strict).ok).toBe(false);
  });

  test("are accepted by default, in their plain spelling", () => {
    expect(["127.0.0.1", "10.0.0.5", "[::1]", "localhost"].map((host) => hrefOf(`http://${host}/`))).toEqual([
      "http://127.0.0.1/",
      "http://10.0.0.5/",
      "http://[::1]/",
      "http://localhost/",
    ]);
  });

  test.each(["8.8.8.8", "172.32.0.1", "192.0.2.1", "[2001:db8::1]", "example.com", "localhost.example.com"])(
    "are not %s",
    (host) => {
      expect(decideTarget(`http://${host}/`, strict).ok).toBe(true);
    },
  );
});

describe("whatever is accepted", () => {
  const texts = fc.oneof(
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
    fc.string({ unit: "binary" }).map((tail) => `https://example.com/${tail}`),
    fc.string({ unit: "grapheme" }).map((host) => `https://${host}.example/x`),
  );

  test("is ASCII without blanks and control characters, bounded, http or https, and the same when decided on again", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const decision = decideTarget(text, rules);
        if (!decision.ok) return;
        expect(decision.href).toMatch(/^https?:\/\/[\x21-\x7e]{1,8192}$/);
        expect(decideTarget(decision.href, rules)).toEqual(decision);
      }),
      { numRuns: 3000 },
    );
  });
});
