import { domainToUnicode } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { decideTarget } from "./target.ts";

const decide = (host: string) => decideTarget(`https://${host}/`, { ownHosts: [], privateHosts: "allow" });
const ruleOf = (host: string) => {
  const decision = decide(host);
  return decision.ok ? "accepted" : decision.rule;
};

/** What a reader takes a host for: letter case makes no difference, nor how an accent is composed. */
function readAs(host: string): string {
  const lower = Array.from(host.normalize("NFC"), (character) => character.toLowerCase());
  return lower.join("").normalize("NFC");
}

/** A host with one character of the first two planes in its first label, for each of them beyond ASCII. */
function* hostsOfEveryCharacter(): Generator<string> {
  for (let point = 0x80; point <= 0x1ffff; point += 1) yield `a${String.fromCodePoint(point)}b.example`;
}

describe("an international host", () => {
  test.each([
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.example", "xn--bcher-kva.example"],
    ["bu\u0308cher.example", "xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["straße.example", "xn--strae-oqa.example"],
    ["οδος.example", "xn--pxavbm.example"],
    ["bücher.example.", "xn--bcher-kva.example."],
    ["bücher.XN--BCHER-KVA", "xn--bcher-kva.xn--bcher-kva"],
    ["例え.テスト", "xn--r8jz45g.xn--zckzah"],
  ])("%s is stored as %s", (typed, stored) => {
    expect(decide(typed)).toEqual({ ok: true, href: `https://${stored}/` });
  });

  test.each([
    ["a capital that is turned into two letters", "STRAẞE.example"],
    ["a capital that is turned into two letters, beside another one", "ÜẞE.example"],
    ["a ligature", "ﬁü.example"],
    ["a Roman numeral", "ⅷü.example"],
    ["a sign that looks like a letter", "\u212aelvin.example"],
    ["a sign that looks like a letter, beside an umlaut", "\u212aü.example"],
    ["a sign that is turned into a semicolon", "a\u037eü.example"],
    ["a long s", "ſhop.example"],
    ["a soft hyphen", "bü\u00adcher.example"],
    ["a variation selector", "☃\ufe0f.example"],
    ["a word joiner", "bü\u2060cher.example"],
    ["a zero-width joiner", "क्\u200dष.example"],
    ["a letter with a mark that is written out", "ᾳ.example"],
    ["an ideographic full stop", "bücher。example"],
    ["a full-width full stop", "bücher．example"],
    ["a half-width full stop", "bücher｡example"],
    ["full-width digits", "１２７.0.0.1"],
    ["mathematical letters", "𝐞xample.com"],
    ["letters in circles", "ⓔxample.com"],
  ])("with %s would be opened as another one, and is refused", (_what, host) => {
    expect(ruleOf(host)).toMatch(/^(?:host-character|unparsable)$/);
  });

  test("with any one character of Unicode's first two planes is opened as it reads, or refused", () => {
    const wrong: string[] = [];
    let accepted = 0;
    for (const host of hostsOfEveryCharacter()) {
      const decision = decide(host);
      if (!decision.ok) continue;
      accepted += 1;
      const { hostname } = new URL(decision.href);
      if (domainToUnicode(hostname) !== readAs(host) || !hostname.startsWith("xn--")) wrong.push(host);
    }
    expect(wrong).toEqual([]);
    expect(accepted).toBeGreaterThan(50_000);
  });

  test("control: the parser alone opens thousands of them as something else", () => {
    const different = [...hostsOfEveryCharacter()].filter((host) => {
      try {
        return domainToUnicode(new URL(`https://${host}/`).hostname) !== readAs(host);
      } catch {
        return false;
      }
    });
    expect(different.length).toBeGreaterThan(3000);
  });
});

describe("a host of numbers", () => {
  test.each([
    ...["0x7f.1", "0X7F.0.0.1", "2130706433", "127.1", "127.0.1", "010.0.0.1", "0177.0.0.1", "127.0.0.1.", "1"],
    ...["[0:0:0:0:0:0:0:1]", "[::0001]", "[::ffff:127.0.0.1]", "[2001:db8:0:0::1]"],
  ])("written as %s is refused, and its usual spelling is named", (host) => {
    const { hostname } = new URL(`https://${host}/`);
    expect(decide(host)).toMatchObject({ ok: false, rule: "host-number", detail: expect.stringContaining(hostname) });
    expect(ruleOf(hostname)).toBe("accepted");
  });

  test("may have its letters in capitals", () => {
    expect(decide("[2001:DB8::A]")).toEqual({ ok: true, href: "https://[2001:db8::a]/" });
  });
});

test.each([
  ["host-label", ["a..example", ".a.example", "a.example..", "..", "."]],
  ["host-escape", ["ex%61mple.com", "%65xample.com", "example%2ecom"]],
  ["port", ["example.com:0443", "example.com:00", "example.com:0080"]],
  ["userinfo", ["a@example.com", ":@example.com", "@example.com", "a:b@example.com", "example.com:80@evil.example"]],
])("(%s) %j are refused", (rule, hosts) => {
  expect(hosts.map(ruleOf)).toEqual(hosts.map(() => rule));
});
