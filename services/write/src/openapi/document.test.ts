import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { PROBLEM_CODES, PROBLEM_GUIDE, type ProblemCode } from "@linkfence/contracts";
import { parse, validate } from "@readme/openapi-parser";
import openapiTypescript, { astToString } from "openapi-typescript";
import { describedRoutes } from "../http/api-routes.ts";
import type { Routes } from "../http/call.ts";
import { USES, writeClient } from "./client-use.fixture.ts";
import { describeApi, printDocument } from "./document.ts";
import { problemsOf } from "./problems.ts";

const COMMITTED = new URL("../../openapi.json", import.meta.url);
/** The compiler is that of the project. */
const ROOT = new URL("../../../../package.json", import.meta.url);
const committed = await readFile(COMMITTED, "utf8");
type Loose = Parameters<typeof validate>[0];
const copy = () => JSON.parse(committed) as Loose & { paths: Record<string, Record<string, { responses: unknown }>> };

type Narrowed = { properties: { code: { enum: ProblemCode[] } } };
type Refusal = {
  description: string;
  content: { "application/problem+json": { schema: { allOf: [unknown, Narrowed] } } };
};

/** Generates types from the committed document, and compiles a use of them; resolves with what the compiler says. */
async function compile(use: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "linkfence-types-"));
  try {
    await writeFile(join(folder, "api.ts"), astToString(await openapiTypescript(JSON.parse(committed))));
    await writeFile(join(folder, "use.ts"), use);
    const compiler = join(dirname(createRequire(ROOT).resolve("typescript/package.json")), "bin/tsc");
    const options = [
      "--noEmit",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--allowImportingTsExtensions",
      "--skipLibCheck",
    ];
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
    expect(names.sort()).toEqual(Object.keys(USES).sort());
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
  test("compile together with a client that calls every operation, and refuses a wrong use of each", async () => {
    expect(await compile(writeClient())).toBe("");
  });

  test("do not compile with a wrong use, a wrong reading of an answer or a client that knows too little", async () => {
    const client = writeClient();
    const wrong = client
      .replace("limit: 5, state", "limits: 5, state")
      .replace("answer.shortUrl", "answer.shortURL")
      .replace(/(every: .*)getImport,/, "$1");
    const complaints = await compile(wrong);
    expect(complaints.match(/error TS/g)).toHaveLength(3);
    for (const word of ["limits", "shortURL", "getImport"]) expect(complaints).toContain(word);
  });
});

describe("problems", () => {
  test("that are listed can each be answered by a call, or by a path that does not have the method", () => {
    const answered = new Set(
      Object.values(describedRoutes()).flatMap((calls) => Object.values(calls).flatMap(problemsOf)),
    );
    expect(PROBLEM_CODES.filter((code) => !answered.has(code))).toEqual(["method-not-allowed"]);
  });

  test("stand at the calls that answer them with meaning and remedy", () => {
    const { components } = describeApi(describedRoutes()) as { components: { responses?: Record<string, Refusal> } };
    const refusals = Object.values(components.responses ?? {});
    expect(refusals.length).toBeGreaterThan(10);
    for (const { description, content } of refusals)
      for (const code of content["application/problem+json"].schema.allOf[1].properties.code.enum)
        expect(description).toContain(`\`${code}\`: ${PROBLEM_GUIDE[code].meaning} ${PROBLEM_GUIDE[code].remedy}`);
  });
});
