import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { withSettings } from "./settings-table.ts";

const readme = () => readFile(new URL("../README.md", import.meta.url), "utf8");

test("README's settings are those that the services read", async () => {
  const text = await readme();
  expect(withSettings(text)).toBe(text);
});

test("a README without its markers is refused", () => {
  expect(() => withSettings("# nothing")).toThrow("no place");
});
