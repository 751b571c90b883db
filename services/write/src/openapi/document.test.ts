import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { PROBLEM_CODES, PROBLEM_GUIDE } from "@linkfence/contracts";
import { parse, validate } from "@readme/openapi-parser";
import openapiTypescript, { astToString } from "openapi-typescript";
import { describedRoutes } from "../http/api-routes.ts";
import type { Routes } from "../http/call.ts";
import { describeApi, printDocument } from "./document.ts";

const COMMITTED = new URL("../../openapi.json", import.meta.url);
const committed = await readFile(COMMITTED, "utf8");
type Loose = Parameters<typeof validate>[0];
const copy = () => JSON.parse(committed) as Loose & { paths: Record<string, Record<string, { responses: unknown }>> };

/** A client of a few lines, which compiles only where the document says what it should of these calls. */
const USE = `import type { components, paths } from "./api.ts";
type Link = components["schemas"]["Link"];
type Created = paths["/v1/links"]["post"]["responses"][201]["content"]["application/json"];
type Query = NonNullable<paths["/v1/links"]["get"]["parameters"]["query"]>;
type Refused = components["responses"]["NotFound"]["content"]["application/problem+json"]["code"];
export const codeOf = (created: Created): string => (created satisfies Link).code;
export const query: Query = { limit: 5, state: "revoked" };
export const refused: Refused = "not-found";
export const body: paths["/v1/links"]["post"]["requestBody"]["content"]["application/json"] = { target: "https://example.com/" };
`;

/** Generates types from the committed document, and compiles a use of them; resolves with what the compiler says. */
async function compile(use: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "linkfence-types-"));
  try {
    await writeFile(join(folder, "api.ts"), astToString(await openapiTypescript(JSON.parse(committed))));
    await writeFile(join(folder, "use.ts"), use);
    const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
    const options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--allowImportingTsExtensions"];
    const modules = ["--module", "nodenext", "--target", "es2023"];
    const args = [compiler, ...options, ...modules, join(folder, "use.ts")];
    return await promisify(execFile)(process.execPath, args, { cwd: folder }).then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("the OpenAPI document", () => {
  test("that is committed is what the routes say", () => {
    expect(printDocument(describeApi(describedRoutes()))).toBe(committed);
  });

  test("changes with a route", () => {
    const routes = describedRoutes();
    const { "/v1/links": links, ...others } = routes as Routes & { "/v1/links": Routes[string] };
    expect(printDocument(describeApi(others))).not.toBe(committed);
    expect(printDocument(describeApi({ ...others, "/v1/moved": links }))).not.toBe(committed);
  });

  test("is valid OpenAPI 3.1", async () => {
    expect(await validate(copy())).toMatchObject({ valid: true, warnings: [] });
    expect(await parse(copy())).toMatchObject({ openapi: "3.1.1" });
  });

  test("would not be valid with an answer that has no description", async () => {
    const broken = copy();
    const call = broken.paths["/v1/links"]?.get;
    if (call) call.responses = { 200: {} };
    expect(await validate(broken)).toMatchObject({ valid: false });
  });

  test("names each operation once", () => {
    const names = Object.values(describedRoutes()).flatMap((calls) =>
      Object.values(calls).map(({ describe }) => describe.operationId),
    );
    expect(names.length).toBeGreaterThan(10);
    expect(new Set(names).size).toBe(names.length);
  });

  test("says of every problem what it means and what to do", () => {
    for (const code of PROBLEM_CODES) {
      const { meaning, remedy } = PROBLEM_GUIDE[code];
      expect(describeApi(describedRoutes()).info.description).toContain(`| \`${code}\` |`);
      expect([meaning, remedy]).toEqual([expect.stringMatching(/^[A-Z].*\.$/), expect.stringMatching(/^[A-Z].*\.$/)]);
    }
  });
});

describe("types made from it", () => {
  test("compile together with a use of them", async () => {
    expect(await compile(USE)).toBe("");
  });

  test("do not compile with a field that no call takes", async () => {
    const wrong = USE.replace("limit: 5", "limits: 5");
    expect(await compile(wrong)).toContain("limits");
  });
});
