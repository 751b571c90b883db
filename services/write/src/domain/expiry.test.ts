import { describe, expect, test } from "@jest/globals";
import { decideExpiry } from "./expiry.ts";

const NOW = Date.UTC(2026, 0, 1);
const timeOf = (expiresAt: string) => {
  const decision = decideExpiry({ expiresAt }, NOW);
  if (!decision.ok) return decision.fault.rule;
  return decision.expiry.kind === "at" ? decision.expiry.time : decision.expiry.kind;
};

describe("a point in time", () => {
  test.each([
    ["2026-01-01T12:00:00Z", "2026-01-01T12:00:00.000000Z"],
    ["2026-01-01T15:00:00+03:00", "2026-01-01T12:00:00.000000Z"],
    ["2026-01-01T11:30:00-00:30", "2026-01-01T12:00:00.000000Z"],
    ["2026-01-01t12:00:00.123456789z", "2026-01-01T12:00:00.123456Z"],
    ["2026-01-01T12:00:00.5Z", "2026-01-01T12:00:00.500000Z"],
    ["2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000000Z"],
  ])("%s is the instant %s", (text, instant) => {
    expect(timeOf(text)).toBe(instant);
  });

  test.each([
    "2026-01-01T12:00:00",
    "2026-01-01",
    "2027-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T12:00:60Z",
    "2026-01-01 12:00:00Z",
    "2026-01-01T12:00:00+3:00",
    "tomorrow",
    "1767268800",
    "",
    "+292278-01-01T00:00:00Z",
  ])("%p is refused", (text) => {
    expect(timeOf(text)).toBe("date-time");
  });

  test.each(["2025-12-31T23:59:59Z", "2025-12-31T23:59:59.999999Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.0Z"])(
    "%s, which is over or is now, is refused",
    (text) => {
      expect(timeOf(text)).toBe("past");
    },
  );

  test("within the second that runs is judged by its fraction, to the microsecond that is kept", () => {
    const at = (expiresAt: string) => decideExpiry({ expiresAt }, NOW + 300).ok;
    expect(at("2026-01-01T00:00:00.3Z")).toBe(false);
    expect(at("2026-01-01T00:00:00.3000009Z")).toBe(false);
    expect(at("2026-01-01T00:00:00.300001Z")).toBe(true);
    expect(at("2026-01-01T03:00:00.9+03:00")).toBe(true);
  });
});

test("null and absent mean never; seconds are left to the database's clock; both at once are refused", () => {
  expect(decideExpiry({}, NOW)).toEqual({ ok: true, expiry: { kind: "never" } });
  expect(decideExpiry({ expiresAt: null, expiresInSeconds: null }, NOW)).toEqual({
    ok: true,
    expiry: { kind: "never" },
  });
  expect(decideExpiry({ expiresInSeconds: 5 }, NOW)).toEqual({ ok: true, expiry: { kind: "after", seconds: 5 } });
  const both = decideExpiry({ expiresInSeconds: 5, expiresAt: "2030-01-01T00:00:00Z" }, NOW);
  expect(both).toMatchObject({ ok: false, fault: { rule: "exclusive" } });
});
