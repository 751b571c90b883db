// The check of answers that all tests of the API go through: that it can fail.
import { describe, expect, test } from "@jest/globals";
import { checkFetched, checkRaw, createContractCheck, readDocument } from "@linkfence/testkit";

const { check, checkPart } = createContractCheck();
const everyAnswer = { "cache-control": "no-store", "x-content-type-options": "nosniff", "x-request-id": "r" };
const json = { ...everyAnswer, "content-type": "application/json; charset=utf-8" };
const problem = { ...everyAnswer, "content-type": "application/problem+json; charset=utf-8" };
const page = { status: 200, headers: json, body: '{"items":[],"next":null}' };

function refusal(status: number, code: string, headers = {}) {
  const body = { type: `urn:linkfence:problem:${code}`, title: code, status, code, detail: "for a test" };
  return { status, headers: { ...problem, ...headers }, body: JSON.stringify(body) };
}

describe("an answer", () => {
  test("as the document says passes, whatever the query", () => {
    expect(() => check("GET", "/v1/links?limit=5", page)).not.toThrow();
    expect(() => check("get", "/v1/links/abc", refusal(404, "not-found"))).not.toThrow();
    expect(() => check("HEAD", "/v1/links", { ...page, body: "" })).not.toThrow();
  });

  test.each([
    ["an undocumented status", { ...page, status: 206 }, "the status 206 is not documented"],
    ["an undocumented media type", { ...page, headers: { ...json, "content-type": "text/html" } }, '"text/html"'],
    [
      "a missing header field",
      { ...page, headers: { "content-type": "application/json" } },
      "Cache-Control is missing",
    ],
    ["a missing member", { ...page, body: '{"items":[]}' }, "next"],
    ["a member too many", { ...page, body: '{"items":[],"next":null,"total":0}' }, "additional"],
    ["a member of another type", { ...page, body: '{"items":[],"next":5}' }, "body/"],
    ["content that is no JSON", { ...page, body: "<html>" }, "body must be"],
    ["a problem that the call does not have", refusal(400, "invalid-alias"), "code"],
    ["a refusal with another status in its body", { ...refusal(400, "invalid-cursor"), status: 503 }, "status"],
    ["a 401 that does not say how to show a key", refusal(401, "unauthorized"), "WWW-Authenticate is missing"],
  ])("with %s does not", (_, answer, complaint) => {
    expect(() => check("GET", "/v1/links", answer)).toThrow(complaint);
  });

  test("with a time that is none does not", () => {
    const times = { createdAt: "yesterday", expiresAt: null, revokedAt: null, revokedBy: null, createdBy: "k" };
    const link = { code: "abc", shortUrl: "", target: "", kind: "ALIAS", state: "ACTIVE", expired: false, version: 1 };
    const body = JSON.stringify({ ...link, ...times, owner: "o", title: null, tags: [], note: null });
    const answer = { status: 200, headers: json, body };
    expect(() => check("GET", "/v1/links/abc", answer)).toThrow("date-time");
    const good = { ...answer, body: body.replace("yesterday", "2026-01-31T12:00:00.000000Z") };
    expect(() => check("GET", "/v1/links/abc", good)).not.toThrow();
  });
});

describe("an answer to what is not documented", () => {
  test("may only be 404 for a path and 405 for a method", () => {
    expect(() => check("GET", "/v2", refusal(404, "not-found"))).not.toThrow();
    expect(() => check("GET", "/v2", page)).toThrow("path that is not documented");
    expect(() => check("PUT", "/v1/links", refusal(405, "method-not-allowed", { allow: "GET" }))).not.toThrow();
    expect(() => check("PUT", "/v1/links", refusal(405, "method-not-allowed"))).toThrow("Allow");
    expect(() => check("PUT", "/v1/links", page)).toThrow("method that is not documented");
  });
});

describe("an answer that came another way", () => {
  const fields = { ...json, "content-length": "26" };
  const raw = (body: string) =>
    `HTTP/1.1 200 OK\r\n${Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("")}\r\n${body}`;

  test("over a plain socket is held against the document", () => {
    expect(checkRaw("GET", "/v1/links", raw(page.body))).toContain(page.body);
    expect(() => checkRaw("GET", "/v1/links", raw("{}"))).toThrow("document says");
    expect(() => checkRaw("GET", "/v1/links", "")).toThrow("document says");
  });

  test("by fetch is held against it, and stays to be read", async () => {
    const answer = await checkFetched("GET", "/v1/links", new Response(page.body, { headers: fields }));
    expect(await answer.text()).toBe(page.body);
    const wrong = new Response("{}", { headers: fields });
    await expect(checkFetched("GET", "/v1/links", wrong)).rejects.toThrow("document says");
    const stream = () => new Response("data", { headers: { ...fields, "content-type": "text/event-stream" } });
    expect(await (await checkFetched("GET", "/v1/changes", stream())).text()).toBe("data");
    await expect(checkFetched("GET", "/v1/links", stream())).rejects.toThrow("text/event-stream");
  });

  test("as an event is held against the schema of changes", () => {
    const change = { seq: 1, type: "revoked", code: "abc", version: 2, changedBy: "k" };
    const whole = { ...change, changedAt: "2026-01-31T12:00:00.000000Z" };
    expect(() => checkPart("LinkChange", whole)).not.toThrow();
    expect(() => checkPart("LinkChange", change)).toThrow("not a LinkChange");
    expect(() => checkPart("Nothing", change)).toThrow("which it does not have");
  });
});

test("a document that names what it does not have is no use", () => {
  const document = readDocument();
  const broken = createContractCheck({ ...document, components: { schemas: document.components.schemas ?? {} } });
  expect(() => broken.check("GET", "/v1/links", page)).toThrow("which it does not have");
});
