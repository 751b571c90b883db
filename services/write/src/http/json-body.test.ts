import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type FieldFault, Problem } from "@linkfence/contracts";
import express from "express";
import { readJsonObject } from "./json-body.ts";

const app = express();
app.post("/", async (request, response) => {
  const told = await readJsonObject(request, 100).catch((error: unknown) => error);
  response.json(told instanceof Problem ? { code: told.code, errors: told.errors } : { read: told });
});
const server = createServer(app);
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

type Told = { code?: string; errors?: FieldFault[]; read?: unknown };
async function send(type: string | undefined, body: string | Uint8Array): Promise<Told> {
  const { port } = server.address() as AddressInfo;
  const headers: Record<string, string> = type === undefined ? {} : { "Content-Type": type };
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: Buffer.from(body) });
  return (await answer.json()) as Told;
}

describe("a media type", () => {
  test.each([
    "application/json",
    "Application/JSON",
    "application/json;charset=utf-8",
    "application/json; CHARSET=UTF-8",
    'application/json \t;\t charset="utf-8" ',
    "application/json; charset=utf8",
    "application/json;",
    "application/json; ; charset=utf-8;",
    'application/json; q="a;charset=utf-16\\"b"; charset=utf-8',
    "application/json; xcharset=utf-16",
  ])("%j is read", async (type) => {
    expect(await send(type, '{"a":1}')).toEqual({ read: { a: 1 } });
  });

  test.each([
    undefined,
    "",
    "text/json",
    "application/jsonp",
    "application/json charset=utf-8",
    "application/json; charset=utf-16",
    "application/json; CHARSET=utf-16",
    "application/json; CHARSET = utf-16",
    "application/json; charset =utf-8",
    "application/json; charset= utf-8",
    'application/json; charset="utf-16"',
    'application/json; charset="utf-8',
    "application/json; charset=",
    "application/json; charset",
    "application/json; charset=utf-8; charset=utf-16",
    "application/json; charset=utf-8, text/plain",
  ])("%j is refused", async (type) => {
    expect(await send(type, '{"a":1}')).toMatchObject({
      code: "unsupported-media-type",
      errors: [{ field: "Content-Type", rule: "mediaType" }],
    });
  });
});

test("a media type as long as a header may be is judged like any other", async () => {
  expect(await send(`application/json${"; ".repeat(3000)}`, "{}")).toEqual({ read: {} });
  for (const end of ["=", '; x="', "; charset=utf-16"])
    for (const long of ["; ".repeat(3000), `;${" ".repeat(6000)}`, `; ${"x".repeat(6000)}`])
      expect(await send(`application/json${long}${end}`, "{}")).toMatchObject({ code: "unsupported-media-type" });
});

test.each([
  ["required", ""],
  ["required", " \n"],
  ["json", "{bad"],
  ["type", "[]"],
  ["type", "null"],
  ["type", '"x"'],
  ["utf-8", Buffer.from([0x7b, 0xff, 0x7d])],
])("a body that breaks the rule %s is refused by the name of body and rule", async (rule, body) => {
  expect(await send("application/json", body)).toEqual({
    code: "invalid-request",
    errors: [{ field: "body", rule, detail: expect.any(String) }],
  });
});
