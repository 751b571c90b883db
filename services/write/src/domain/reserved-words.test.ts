import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { isReserved, RESERVED_WORDS } from "./reserved-words.ts";

test("every part of every path that the API routes is reserved, so that no link can ever stand in its way", () => {
  const routes = ["links-routes.ts", "batch-routes.ts"].flatMap((name) => {
    const text = readFileSync(fileURLToPath(new URL(`../http/${name}`, import.meta.url)), "utf8");
    return [...text.matchAll(/^ {4}"(\/[^"]+)": \{$/gm)].map(([, path = ""]) => path);
  });
  expect(routes.length).toBeGreaterThanOrEqual(5);
  const words = routes.flatMap((path) => path.split(/[/\\]/)).filter((word) => /^\w+$/.test(word));
  expect(words.filter((word) => !isReserved(word))).toEqual([]);
});

test("the list is in lower case, as it is compared", () => {
  expect(RESERVED_WORDS.filter((word) => word !== word.toLowerCase())).toEqual([]);
});
