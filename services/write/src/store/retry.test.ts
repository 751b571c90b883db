import { describe, expect, test } from "@jest/globals";
import { DeadlineExceeded } from "@linkfence/db";
import { retryTransient } from "./retry.ts";

/** Work that fails with these errors, one a try, and then succeeds. */
function failing(errors: unknown[]) {
  let tries = 0;
  const work = async () => {
    const error = errors[tries];
    tries += 1;
    if (error !== undefined) throw error;
    return "done";
  };
  return { work, tries: () => tries };
}
const sqlError = (code: string) => Object.assign(new Error(code), { code });

describe("work that the database did not carry out", () => {
  test.each([["40P01"], ["55P03"], ["40001"]])("(%s) is done again, twice at the most", async (code) => {
    const twice = failing([sqlError(code), sqlError(code)]);
    expect(await retryTransient(twice.work)).toBe("done");
    expect(twice.tries()).toBe(3);
    const always = failing(Array(9).fill(sqlError(code)));
    await expect(retryTransient(always.work)).rejects.toMatchObject({ code });
    expect(always.tries()).toBe(3);
  });
});

test.each([
  ["a lost connection", sqlError("CONNECTION_CLOSED")],
  ["a missed deadline", new DeadlineExceeded(1000)],
  ["a server that stops", sqlError("57P01")],
  ["a taken name", sqlError("23505")],
  ["a wrong statement", sqlError("42601")],
  ["anything else", new Error("anything")],
])("%s is passed on at once: the work may have been done, or never will be", async (_what, error) => {
  const once = failing([error]);
  await expect(retryTransient(once.work)).rejects.toBe(error);
  expect(once.tries()).toBe(1);
});
