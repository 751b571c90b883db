import { describe, expect, test } from "@jest/globals";
import type { LinkChange } from "@linkfence/contracts";
import fc from "fast-check";
import { decideLastEventId, formatEvent, formatHeartbeat, formatOpening } from "./change-feed.ts";

const change: LinkChange = {
  seq: 7,
  type: "revoked",
  code: "abc",
  version: 2,
  changedAt: "2026-01-31T12:00:00.000001Z",
  changedBy: "k",
};

describe("the field Last-Event-ID", () => {
  test.each([0, 1, 42, Number.MAX_SAFE_INTEGER])("is a position where it is %s", (position) => {
    expect(decideLastEventId([String(position)])).toEqual({ ok: true, position });
  });

  test("may be absent", () => {
    expect(decideLastEventId([])).toEqual({ ok: true, position: null });
  });

  test.each([
    ...["", " ", "-1", "+1", "01", "1.0", "1e3", "0x10", "abc", "1\u0000", "9007199254740992", "99999999999999999999"],
    ...["1, 2", "9".repeat(8000), "\ud800"],
  ])("is refused where it is %j", (value) => {
    expect(decideLastEventId([value])).toMatchObject({
      ok: false,
      fault: { field: "Last-Event-ID", rule: "position" },
    });
  });

  test("is refused where it comes twice", () => {
    expect(decideLastEventId(["1", "1"])).toMatchObject({ ok: false, fault: { rule: "repeated" } });
  });
});

test("a change is one event: three lines and an empty one, whatever its texts hold", () => {
  expect(formatEvent(change)).toBe(`id: 7\nevent: revoked\ndata: ${JSON.stringify(change)}\n\n`);
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const lines = formatEvent({ ...change, code: text, changedBy: text }).split(/\r\n|\r|\n/);
      expect(lines).toHaveLength(5);
      expect(JSON.parse((lines[2] ?? "").slice("data: ".length))).toMatchObject({ code: text });
    }),
  );
});

test("an opening and a heartbeat say where the reader stands, and have no data", () => {
  expect(formatOpening(7, 2500)).toBe("retry: 2500\nid: 7\n\n");
  expect(formatHeartbeat(8)).toBe(":\nid: 8\n\n");
});
