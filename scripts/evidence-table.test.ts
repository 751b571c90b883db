import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { claims, claimsIn, withEvidence } from "./evidence-table.ts";

const readme = () => readFile(new URL("../README.md", import.meta.url), "utf8");

test("README's table has every experiment of the catalogue, and claims of each what it shows", async () => {
  expect(claimsIn(await readme())).toEqual(claims());
});

test("a run's figures stand in their rows, and nothing else of README changes", async () => {
  const text = await readme();
  const changed = withEvidence(text, new Map([["R4", ["7 of 9", "a|b"]]]));
  expect(claimsIn(changed)).toEqual(claims());
  expect(changed).toContain("7 of 9; a\\|b |");
  expect(changed.split("<!-- evidence")[0]).toBe(text.split("<!-- evidence")[0]);
});
