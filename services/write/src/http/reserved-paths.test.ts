import { expect, test } from "@jest/globals";
import { isReserved, RESERVED_WORDS } from "../domain/reserved-words.ts";
import { describedRoutes } from "./api-routes.ts";

test("every part of every path that the API routes is reserved, so that no link can ever stand in its way", () => {
  const paths = Object.keys(describedRoutes());
  expect(paths).toContain("/v1/links/:code/stats");
  const words = paths.flatMap((path) => path.split(/[/\\]/)).filter((word) => /^\w+$/.test(word));
  expect(words.filter((word) => !isReserved(word))).toEqual([]);
});

test("the list is in lower case, as it is compared", () => {
  expect(RESERVED_WORDS.filter((word) => word !== word.toLowerCase())).toEqual([]);
});
