// The audit in the log of a real service: who changed what, from where, and how it ended.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { LogRecord } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
let adminId = "";
beforeAll(async () => {
  world = await startApiWorld({ RATE_LIMIT_ADDRESS_PER_MINUTE: "4", TRUST_PROXY: "loopback" });
  adminId = world.adminKey.split("_")[1] ?? "";
});
afterAll(() => world.stop());

type Asking = { key?: string | null; body?: unknown; headers?: Record<string, string> };

/** Sends a call with an id of its own, and returns its answer and the first record that tells of it. */
async function audited(method: string, path: string, { key = world.adminKey, body, headers = {} }: Asking = {}) {
  const requestId = randomUUID();
  const answer = await world.raw(path, {
    method,
    headers: {
      ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
      "Content-Type": "application/json",
      "X-Request-Id": requestId,
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const json = answer.body === "" ? {} : (JSON.parse(answer.body) as Record<string, string>);
  const record = () => world.write.logged((one) => one.message === "audit" && one.requestId === requestId);
  return { status: answer.status, json, record, requestId };
}

const audits = () => world.write.records().filter(({ message }) => message === "audit");
const told = ({ time: _time, ...rest }: LogRecord) => rest;

describe("the audit", () => {
  test("tells of each change who made it, what it was about, and what came of it", async () => {
    const common = { level: "info", service: "write", message: "audit", owner: "admin", keyId: adminId };
    const expected = async (asked: Awaited<ReturnType<typeof audited>>, more: Record<string, unknown>) =>
      expect(told(await asked.record())).toEqual({
        ...common,
        requestId: asked.requestId,
        address: "127.0.0.1",
        outcome: "done",
        subject: null,
        status: asked.status,
        ...more,
      });
    const target = "https://secret.example/?token=hush-hush";
    const key = { "Idempotency-Key": "hush-hush-key" };
    const link = await audited("POST", "/v1/links", { body: { target, title: "hush-hush" }, headers: key });
    const { code = "" } = link.json;
    await expected(link, { operation: "createLink", created: code });
    await expected(await audited("POST", "/v1/links", { body: { target, title: "hush-hush" }, headers: key }), {
      ...{ operation: "createLink", created: code, outcome: "replayed" },
    });
    await expected(await audited("POST", "/v1/links:batch", { body: { links: [{ target }, { target: "no" }] } }), {
      ...{ operation: "createLinks", count: 1 },
    });
    await expected(await audited("PATCH", `/v1/links/${code}`, { body: { note: "hush-hush" } }), {
      ...{ operation: "updateLink", subject: code },
    });
    const codes = { codes: [code, "other", "?"] };
    await expected(await audited("POST", "/v1/links:revoke", { body: codes }), { operation: "revokeLinks", count: 1 });
    await expected(await audited("POST", "/v1/links:revoke", { body: codes }), { operation: "revokeLinks", count: 0 });
    await expected(await audited("DELETE", `/v1/links/${code}?wait=committed`), {
      ...{ operation: "revokeLink", subject: code },
    });
    const made = await audited("POST", "/v1/keys", { body: { name: "hush-hush", scopes: ["links:read"] } });
    await expected(made, { operation: "createKey", created: made.json.id });
    const rotated = await audited("POST", `/v1/keys/${made.json.id}/rotation`);
    await expected(rotated, { operation: "rotateKey", subject: made.json.id, created: rotated.json.id });
    await expected(await audited("DELETE", `/v1/keys/${made.json.id}`), {
      operation: "revokeKey",
      subject: made.json.id,
    });
    const csv = { "Content-Type": "text/csv" };
    const file = `target\n${target}\nnonsense\n`;
    const imported = await audited("POST", "/v1/imports", { body: file, headers: csv });
    await expected(imported, { operation: "importLinks", created: imported.json.id, count: 1 });
    const trial = await audited("POST", "/v1/imports?dryRun=true", { body: file, headers: csv });
    await expected(trial, { operation: "importLinks", created: trial.json.id, count: 0 });
    for (const secret of [made.json.secret, rotated.json.secret, world.adminKey])
      expect(world.write.output()).not.toContain(String(secret).slice(-43));
    expect(world.write.output()).not.toContain("hush-hush");
  });

  test("tells of calls that were refused for their key, and of each limit the first alone", async () => {
    const reader = await world.addKey("ann", ["links:read"]);
    const readerId = reader.split("_")[1];
    const refused = (problem: string, more = {}) => ({ outcome: "refused", problem, ...more });
    const scope = await audited("DELETE", "/v1/links/some-code", { key: reader });
    expect(scope.status).toBe(403);
    expect(await scope.record()).toMatchObject(
      refused("insufficient-scope", { owner: "ann", keyId: readerId, subject: "some-code", operation: "revokeLink" }),
    );
    const headers = { "X-Forwarded-For": "203.0.113.77", Cookie: "session=hush-hush" };
    const wrong = `linkfence_${adminId}_${"hush".repeat(10)}abc`;
    const kinds: number[] = [];
    const ids: string[] = [];
    for (const key of [null, "hush-hush", wrong, wrong, wrong, wrong, wrong]) {
      const asked = await audited("DELETE", "/v1/links/x?token=hush-hush", { key, headers });
      kinds.push(asked.status);
      ids.push(asked.requestId);
    }
    expect(kinds).toEqual([401, 401, 401, 401, 429, 429, 429]);
    // A record is written before its answer: those of all that are behind these are there.
    await (await audited("POST", "/v1/links:revoke", { body: { codes: ["last"] } })).record();
    const records = ids.map((id) => audits().find(({ requestId }) => requestId === id));
    expect(records.map((record) => record?.problem)).toEqual([
      ...Array(4).fill("unauthorized"),
      "rate-limited",
      ...Array(2).fill(undefined),
    ]);
    for (const record of records.slice(0, 5))
      expect(record).toMatchObject({ owner: null, keyId: null, address: "203.0.113.77", operation: "revokeLink" });
    expect(world.write.output()).not.toContain("hush");
  });

  test("does not tell of what was only read, nor of what was refused for what it asked", async () => {
    const ids: string[] = [];
    for (const [method, path, body] of [
      ["GET", "/v1/links", undefined],
      ["GET", "/v1/keys", undefined],
      ["POST", "/v1/links", { target: "javascript:alert(1)" }],
      ["DELETE", "/v1/links/unknown", undefined],
      ["PUT", "/v1/links", {}],
    ] as const)
      ids.push((await audited(method, path, { body })).requestId);
    await (await audited("POST", "/v1/links:revoke", { body: { codes: ["last"] } })).record();
    expect(audits().filter(({ requestId }) => ids.includes(String(requestId)))).toEqual([]);
  });

  test("is one line of bounded length whatever a path holds, with no key in it", async () => {
    const forged = encodeURIComponent('x\n{"level":"error","message":"audit"}\r\u2028\u0085\u001b[31m');
    const reader = await world.addKey("eve", ["links:read"]);
    for (const subject of [forged, "a".repeat(7000), encodeURIComponent(`${"a".repeat(60)} ${world.adminKey}`)]) {
      const asked = await audited("DELETE", `/v1/links/${subject}`, { key: reader });
      const record = await asked.record();
      expect(String(record.subject).length).toBeLessThanOrEqual(100);
      const lines = world.write
        .output()
        .split("\n")
        .filter((line) => line.includes(asked.requestId));
      expect(lines).toHaveLength(1);
      expect(lines[0]?.length).toBeLessThan(1000);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
      expect(lines[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
      expect(lines[0]).not.toContain(world.adminKey.slice(-43, -10));
    }
    for (const line of world.write.output().split("\n").filter(Boolean))
      expect(JSON.parse(line)).toMatchObject({ service: "write", level: "info" });
  });
});
