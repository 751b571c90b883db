import { describe, expect, test } from "@jest/globals";
import { allows, parseKey } from "../domain/api-key.ts";
import { hashSecret, matchesSecret, mintKey } from "./key-secret.ts";

describe("a new key", () => {
  test("has the documented form, and is stored as a digest that does not contain it", () => {
    const { id, text, secretHash } = mintKey();
    const parts = parseKey(text);
    expect(parts).toEqual({ id, secret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) });
    expect(Buffer.from(parts?.secret ?? "", "base64url")).toHaveLength(32);
    expect(secretHash).toHaveLength(32);
    expect(secretHash.includes(parts?.secret ?? "")).toBe(false);
  });

  test("is another one each time", () => {
    const keys = Array.from({ length: 1000 }, mintKey);
    expect(new Set(keys.map(({ id }) => id)).size).toBe(1000);
    expect(new Set(keys.map(({ text }) => text.slice(-43))).size).toBe(1000);
  });
});

describe("a secret", () => {
  const { text, secretHash } = mintKey();
  const secret = parseKey(text)?.secret ?? "";

  test("matches its own digest", () => {
    expect(matchesSecret(secret, secretHash)).toBe(true);
  });

  test.each(["", "a", "€€", secret.slice(1), `${secret}a`, "x".repeat(10_000), "\ud800"])(
    "that is wrong, as %j is, does not match and does not throw, whatever its length in bytes",
    (wrong) => {
      expect(matchesSecret(wrong, secretHash)).toBe(false);
    },
  );

  test("matches no key that does not exist, not even one whose digest would be what is compared instead", () => {
    expect(matchesSecret(secret, undefined)).toBe(false);
    expect(hashSecret(secret).equals(Buffer.alloc(32))).toBe(false);
  });
});

test.each([
  `linkfence_short_${"a".repeat(43)}`,
  ...[42, 44].map((length) => `linkfence_AAAAAAAAAAAA_${"a".repeat(length)}`),
  `linkfence_AAAAAAAAAAAA_${"a".repeat(42)}=`,
  `linkfence_AAAAAAAAAAA\u00e4_${"a".repeat(43)}`,
  `linkfence_AAAAAAAAAAAA_${"a".repeat(43)}\n`,
  ` linkfence_AAAAAAAAAAAA_${"a".repeat(43)}`,
])("%j is no key, so nobody looks it up", (text) => {
  expect(parseKey(text)).toBeUndefined();
});

test("admin allows everything, and any other scope allows itself alone", () => {
  expect(allows(["admin"], "links:revoke")).toBe(true);
  expect(allows(["links:read", "links:create"], "links:create")).toBe(true);
  expect(allows(["links:read", "links:create"], "links:revoke")).toBe(false);
  expect(allows(["exports"], "admin")).toBe(false);
  expect(allows([], "links:read")).toBe(false);
});
