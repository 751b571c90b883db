import { describe, expect, test } from "@jest/globals";
import { type Database, DeadlineExceeded } from "@linkfence/db";
import { createLinkReader, ForeignAnswer, mayBeOfOneRow, StandbyAnswer, UnsendableTarget } from "./links.ts";

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
  owner: "ann",
};
const absent = {
  asked: "mine",
  standby: false,
  state: null,
  target: null,
  version: null,
  remaining_ms: null,
  owner: null,
};

const LINK = { target: "https://example.com/", state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" };

describe("an answer of the database", () => {
  test("leads to its own target, or says that there is none", async () => {
    expect(await answering(found)(["mine"])).toEqual([LINK]);
    expect(await answering(absent)(["mine"])).toEqual([null]);
  });

  test("of several questions is told apart by their names, in whatever order it comes, and for each time one was asked", async () => {
    const other = { ...absent, asked: "other" };
    const read = answering(other, found, found);
    expect(await read(["mine", "other", "mine"])).toEqual([LINK, null, LINK]);
  });

  test("holds what is wrong with one row against that one alone", async () => {
    const bad = { ...found, asked: "bad", target: "https://example.com/\r\nSet-Cookie: a=b" };
    const [first, second] = await answering(found, bad)(["mine", "bad"]);
    expect([first, second]).toEqual([LINK, expect.any(UnsendableTarget)]);
  });

  test.each([
    ["another link's target", [found]],
    ["that another code leads nowhere", [absent]],
    ["nothing", []],
    ["more than was asked", [{ ...found, asked: "yours" }, found]],
  ])("that tells %s is refused", async (_what, rows) => {
    await expect(answering(...rows)(["yours"])).rejects.toThrow(ForeignAnswer);
  });

  test.each([found, absent])("that a standby gave is refused (%#)", async (row) => {
    await expect(answering({ ...row, standby: true })(["mine"])).rejects.toThrow(StandbyAnswer);
  });
});

test.each([
  [new RangeError("a bigint beyond 2^53"), true],
  [new ForeignAnswer(), false],
  [new StandbyAnswer(), false],
  [new DeadlineExceeded(1), false],
  [Object.assign(new Error("the server is going down"), { code: "57P01" }), false],
])("an error may be that of one row, or is everybody's: %s", (error, ofOneRow) => {
  expect(mayBeOfOneRow(error)).toBe(ofOneRow);
});
