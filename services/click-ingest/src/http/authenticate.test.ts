import { describe, expect, test } from "@jest/globals";
import request from "supertest";
import { bearer } from "../test-support/bearer.ts";
import { openApp } from "../test-support/open-app.ts";

describe("the shared secret", () => {
  const secret = "s".repeat(32);

  test("lets in who knows it, in any letter case of the scheme, for every path", async () => {
    const { app } = openApp({ secret });
    for (const header of [bearer(secret), `bearer  ${secret} `]) {
      const ask = (path: string) => request(app).get(path).set("Authorization", header);
      expect((await ask("/v1/links/abc/stats")).status).toBe(200);
      expect((await ask("/nothing")).status).toBe(404);
    }
  });

  test.each([
    ["nothing", undefined],
    ["an empty field", ""],
    ["another secret of the same length", bearer("t".repeat(32))],
    ["a shorter one", bearer(secret.slice(1))],
    ["a longer one", bearer(`${secret}s`)],
    ["more bytes than characters", bearer("é".repeat(32))],
    ["another scheme", `Basic ${secret}`],
    ["the secret alone", secret],
  ])("answers 401 to %s, before it reads the body", async (_case, header) => {
    const { app, offered, ledger } = openApp({ secret });
    const call = request(app).post("/v1/clicks").type("text/plain");
    if (header !== undefined) call.set("Authorization", header);
    const answer = await call.send("no batch at all");
    expect([answer.status, answer.body.code]).toEqual([401, "unauthorized"]);
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(answer.headers["www-authenticate"]).toMatch(/^Bearer /);
    expect(JSON.stringify(answer.body)).not.toContain(secret);
    expect([offered, ledger.read().received]).toEqual([[], 0]);
  });
});
