// The service with the rights of its own role, as it is deployed: every call of the API does what it does with all rights.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { runRights } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { sendFile } from "./imports.fixture.ts";
import { operations } from "./openapi/operations.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld({}, async ({ sql, url }) => {
    await runRights(sql, "roles");
    await runRights(sql, "grants-main");
    return `${url}?options=${encodeURIComponent("-c role=linkfence_write")}`;
  });
});
afterAll(async () => {
  await world.stop();
});

const target = "https://example.com/";
const keyed = { "Idempotency-Key": "rights", "Content-Type": "application/json" };

/** Every operation that touches the database, once, with something that it succeeds with; resolves with the status. */
const uses: Readonly<Record<string, () => Promise<number>>> = {
  createLink: async () => {
    for (const body of [{ target }, { target, alias: "rights-alias", tags: ["a"], expiresInSeconds: 60 }])
      expect((await world.create(body)).status).toBe(201);
    const options = { method: "POST", headers: world.authorized(keyed), body: JSON.stringify({ target }) };
    return (await world.raw("/v1/links", options)).status;
  },
  createLinks: async () => (await world.api("POST", "/v1/links:batch", { links: [{ target }, { target }] })).status,
  getLink: async () => (await world.api("GET", `/v1/links/${await newCode()}`)).status,
  updateLink: async () =>
    (await world.api("PATCH", `/v1/links/${await newCode()}`, { title: "t", tags: ["b"], note: "n" })).status,
  listLinks: async () => {
    for (const code of ["rights-listed-1", "rights-listed-2"]) await world.create({ target, alias: code, tags: ["a"] });
    for (const filter of ["", "&tag=a", "&state=active", "&state=revoked", "&state=expired"])
      expect((await world.api("GET", `/v1/links?limit=2${filter}`)).status).toBe(200);
    const { json } = await world.api("GET", "/v1/links?limit=1");
    return (await world.api("GET", `/v1/links?limit=1&after=${String(json.next)}`)).status;
  },
  revokeLink: async () => (await world.api("DELETE", `/v1/links/${await newCode()}`)).status,
  revokeLinks: async () => (await world.api("POST", "/v1/links:revoke", { codes: [await newCode(), "absent"] })).status,
  getRevocation: async () => {
    const code = await newCode();
    await world.api("DELETE", `/v1/links/${code}`);
    return (await world.api("GET", `/v1/links/${code}/revocation`)).status;
  },
  listInstances: async () => (await world.api("GET", "/v1/instances")).status,
  listChanges: async () => (await world.api("GET", "/v1/changes?limit=5")).status,
  createKey: async () => (await world.api("POST", "/v1/keys", { name: "n", scopes: ["links:read"] })).status,
  listKeys: async () => (await world.api("GET", "/v1/keys")).status,
  rotateKey: async () => (await world.api("POST", `/v1/keys/${await newKeyId()}/rotation`, {})).status,
  revokeKey: async () => (await world.api("DELETE", `/v1/keys/${await newKeyId()}`)).status,
  importLinks: async () => (await importFile()).status,
  listImports: async () => (await world.api("GET", "/v1/imports")).status,
  getImport: async () => (await world.api("GET", `/v1/imports/${(await importFile()).body.id}`)).status,
  listImportErrors: async () => (await world.api("GET", `/v1/imports/${(await importFile()).body.id}/errors`)).status,
  listImportLinks: async () => (await world.api("GET", `/v1/imports/${(await importFile()).body.id}/links`)).status,
};

/** What needs no right of this database's beyond those of the calls above. */
const ELSEWHERE = [
  "startExport",
  "listExports",
  "getExport",
  "cancelExport",
  "downloadExport",
  "getLinkStats",
  "getStats",
  "listClicks",
  "getOpenApiDocument",
  "getDocsPage",
  "getDocsFile",
];

async function newCode(): Promise<string> {
  return String((await world.create({ target })).json.code);
}

async function newKeyId(): Promise<string> {
  return String((await world.api("POST", "/v1/keys", { name: "n", scopes: ["links:read"] })).json.id);
}

let files = 0;
function importFile() {
  files += 1;
  return sendFile(world.write.url, world.adminKey, `target,alias\n${target},imported-${files}\nnonsense,\n`);
}

test("every operation is tried", () => {
  expect([...Object.keys(uses), ...ELSEWHERE].sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
});

test.each(Object.keys(uses))("%s has the rights that it needs", async (operationId) => {
  const status = await uses[operationId]?.();
  expect([200, 201, 204]).toContain(status);
});

test("control: a call whose right was taken away fails, so these rights are the ones that count", async () => {
  const { sql } = world.database;
  const right = "EXECUTE ON FUNCTION revoke_api_key(text, text, text)";
  await sql.unsafe(`REVOKE ${right} FROM linkfence_write`);
  expect(await uses.revokeKey?.()).toBe(500);
  await sql.unsafe(`GRANT ${right} TO linkfence_write`);
  expect(await uses.revokeKey?.()).toBe(204);
});
