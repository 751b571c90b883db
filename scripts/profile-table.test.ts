import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readMarked } from "./marked-part.ts";
import { readProfile, withProfile } from "./profile-table.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-profile-"));
});
afterAll(() => rm(directory, { recursive: true }));

async function resultFile(document: object): Promise<string> {
  const path = join(directory, "results.json");
  await writeFile(path, JSON.stringify(document));
  return path;
}

test("the table of a run takes the place of the one before, and nothing else changes", async () => {
  const text = await readFile(new URL("../services/redirect/PROFILE.md", import.meta.url), "utf8");
  const table = readProfile(await resultFile({ subject: "profile", quick: false, figures: [], tables: ["| a |"] }));

  const changed = withProfile(text, table);

  expect(readMarked(changed, "profile")).toBe("| a |");
  expect(withProfile(changed, readMarked(text, "profile"))).toBe(text);
});

test.each([
  ["another subject", { subject: "redirect-hot", quick: false, tables: ["| a |"] }],
  ["a short run", { subject: "profile", quick: true, tables: ["| a |"] }],
  ["no table", { subject: "profile", quick: false }],
])("the results of %s are refused", async (_, document) => {
  const path = await resultFile(document);
  expect(() => readProfile(path)).toThrow("no result file");
});
