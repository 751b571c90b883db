import { describe, expect, test } from "@jest/globals";
import { decideListing, type ListParameters } from "./list-query.ts";

const NOTHING = { state: null, tag: null, createdAfter: null, createdBefore: null };
const faultOf = (parameters: ListParameters) => {
  const decision = decideListing(parameters);
  return decision.ok ? null : `${decision.fault.field}: ${decision.fault.rule}`;
};

describe("a listing", () => {
  test("without parameters shows twenty links of every kind", () => {
    expect(decideListing({})).toEqual({ ok: true, limit: 20, filter: NOTHING });
  });

  test("takes every parameter, and reads times as instants", () => {
    const parameters: ListParameters = {
      limit: 100,
      state: "expired",
      tag: "é".repeat(50),
      createdAfter: "2026-01-01T02:00:00.0000015+02:00",
      createdBefore: "2026-01-02T00:00:00z",
    };
    expect(decideListing(parameters)).toEqual({
      ok: true,
      limit: 100,
      filter: {
        state: "expired",
        tag: "é".repeat(50),
        createdAfter: "2026-01-01T00:00:00.000001Z",
        createdBefore: "2026-01-02T00:00:00.000000Z",
      },
    });
  });

  test.each([
    ["tag", "a\0b", "text"],
    ["tag", "\ud800", "text"],
    ...["", "yesterday", "0", "1700000000", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00 00:00"].map(
      (text) => ["createdAfter", text, "date-time"] as const,
    ),
    ["createdAfter", "2026-02-30T00:00:00Z", "date-time"],
    ["createdBefore", "2026-01-01T00:00:00.1234567890Z", "date-time"],
    ["createdBefore", "0000-12-31T23:59:59Z", "range"],
    ["createdAfter", "0001-01-01T00:00:00+00:01", "range"],
    ["createdAfter", "9999-12-31T23:59:59-00:01", "range"],
  ] as const)("refuses %s=%j by its rule: %s", (field, text, rule) => {
    expect(faultOf({ [field]: text })).toBe(`${field}: ${rule}`);
  });
});
