import { describe, expect, test } from "@jest/globals";
import type { Database } from "@linkfence/db";
import { createLinkReader, ForeignAnswer, StandbyAnswer } from "./links.ts";

/** A driver that answers every question with the same rows. */
function answering(...rows: object[]) {
  return createLinkReader({ read: async () => rows } as unknown as Database);
}

const found = {
  asked: "mine",
  standby: false,
  state: "ACTIVE",
  target: "https://example.com/",
  version: 1,
  remaining_ms: null,
};
const absent = { asked: "mine", standby: false, state: null, target: null, version: null, remaining_ms: null };

describe("an answer of the database", () => {
  test("leads to its own target, or says that there is none", async () => {
    expect(await answering(found)("mine")).toEqual({
      ...{ target: "https://example.com/", state: "ACTIVE", version: 1, remainingMs: null },
    });
    expect(await answering(absent)("mine")).toBeNull();
  });

  test.each([
    ["another link's target", [found]],
    ["that another code leads nowhere", [absent]],
    ["nothing", []],
  ])("that tells %s is refused", async (_what, rows) => {
    await expect(answering(...rows)("yours")).rejects.toThrow(ForeignAnswer);
  });

  test.each([found, absent])("that a standby gave is refused (%#)", async (row) => {
    await expect(answering({ ...row, standby: true })("mine")).rejects.toThrow(StandbyAnswer);
  });
});
