import { describe, expect, test } from "@jest/globals";
import type { Request } from "express";
import { createBodyBudget } from "./body-budget.ts";

/** A request whose body is said to have so many bytes; undefined for one that does not say. */
const requestOf = (length: number | string | undefined) =>
  ({ get: () => (length === undefined ? undefined : String(length)) }) as unknown as Request;
const forever = () => new Promise<never>(() => {});

describe("the budget of bodies", () => {
  test("lets work through while it fits, refuses what does not, and counts both", async () => {
    const budget = createBodyBudget(100);
    void budget.within(requestOf(60), 80, forever);
    expect(await budget.within(requestOf(40), 80, async () => budget.stats().taken)).toBe(100);
    await expect(budget.within(requestOf(41), 80, forever)).rejects.toMatchObject({ code: "overloaded" });
    expect(budget.stats()).toEqual({ taken: 60, refused: 1 });
  });

  test("gives back what was taken, also when the work fails", async () => {
    const budget = createBodyBudget(100);
    for (let n = 0; n < 10; n += 1)
      await expect(budget.within(requestOf(100), 100, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(budget.stats()).toEqual({ taken: 0, refused: 0 });
  });

  test.each([[undefined], ["nonsense"], ["1e99"], ["-5"]])(
    "takes a body that does not say how long it is (%s) for one of full size",
    async (length) => {
      const budget = createBodyBudget(100);
      expect(await budget.within(requestOf(length), 80, async () => budget.stats().taken)).toBe(80);
    },
  );
});
