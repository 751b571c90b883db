import { describe, expect, test } from "@jest/globals";
import { EXPORT_FAULTS } from "@linkfence/contracts";
import { isPassing, pauseMs, storageFault } from "./export-fault.ts";

describe("a failed attempt", () => {
  test("is not repeated where the order or this program is at fault, and is otherwise", () => {
    expect(EXPORT_FAULTS.filter((fault) => !isPassing(fault))).toEqual(["too-many-rows", "internal"]);
  });

  test("waits four times as long each time, a minute at the most, and half of it by chance", () => {
    expect([1, 2, 3, 4, 50].map((attempts) => pauseMs(attempts, 0))).toEqual([1000, 4000, 16_000, 30_000, 30_000]);
    expect([1, 2, 50].map((attempts) => pauseMs(attempts, 1))).toEqual([2000, 8000, 60_000]);
  });

  test.each([
    ["ENOSPC", "storage-full"],
    ["EDQUOT", "storage-full"],
    ["EFBIG", "storage-full"],
    ["EIO", "storage"],
    ["ENOENT", "storage"],
    ["", "storage"],
  ])("of %j is told as %s, without a path", (code, fault) => {
    const failure = storageFault(code);
    expect(failure.fault).toBe(fault);
    expect(failure.message).not.toMatch(/[/\\]/);
  });
});
