import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { decideTarget, ownHostOf, type TargetRules } from "./target.ts";
import { KEPT, PRIVATE, REFUSED, RESPELLED, RULES } from "./target-table.fixture.ts";

const strict: TargetRules = { ...RULES, privateHosts: "deny" };
const hrefOf = (text: string, by = RULES) => {
  const decision = decideTarget(text, by);
  return decision.ok ? decision.href : decision.rule;
};

describe("a target that differs from its canonical form by spelling alone is accepted", () => {
  test.each(RESPELLED)("%s is %s", (text, href) => {
    expect(hrefOf(text)).toBe(href);
  });

  test("and one that does not differ is kept byte for byte", () => {
    expect(KEPT.map((text) => hrefOf(text))).toEqual(KEPT);
  });
});

test.each(REFUSED)("a target is refused by the rule %s", (rule, texts) => {
  expect(texts.map((text) => hrefOf(text))).toEqual(texts.map(() => rule));
});

test("on a developer's machine the own host is refused only with its own port", () => {
  const local: TargetRules = { ownHosts: [ownHostOf("http://127.0.0.1:7000")], privateHosts: "allow" };
  expect(hrefOf("http://localhost:7000/x", local)).toBe("own-host");
  expect(hrefOf("http://127.0.0.1:3000/", local)).toBe("http://127.0.0.1:3000/");
});

describe("private hosts", () => {
  test.each(PRIVATE)("such as %s are accepted by default, and refused where the switch says so", (host) => {
    expect(hrefOf(`http://${host}/`)).toBe(`http://${host}/`);
    expect(hrefOf(`http://${host}/`, strict)).toBe("private-host");
  });

  test.each(["[::ffff:127.0.0.1]", "[::ffff:a00:5]", "127.0.0.1.", "LOCALHOST", "localhost."])(
    "are refused in another spelling, too: %s",
    (host) => {
      expect(decideTarget(`http://${host}/`, strict).ok).toBe(false);
    },
  );

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
        const decision = decideTarget(text, RULES);
        if (!decision.ok) return;
        expect(decision.href).toMatch(/^https?:\/\/[\x21-\x7e]{1,8192}$/);
        expect(decideTarget(decision.href, RULES)).toEqual(decision);
      }),
      { numRuns: 3000 },
    );
  });
});
