// Nonsense in every parameter, header field and member of every operation: told which field breaks which rule, and
// nothing is made or changed by it. What is sent comes from the document, so that a new parameter is tried as well.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { mapConcurrently } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "../api-world.fixture.ts";
import {
  membersOf,
  STRANGE_PAIRS,
  WRONG_BODIES,
  WRONG_FIELDS,
  WRONG_PARTS,
  wrongMembers,
  wrongPairs,
  wrongValues,
} from "./nonsense.fixture.ts";
import { fillPath, type Operation, operations } from "./operations.fixture.ts";

const WIDTH = 8;
const FILE = "target\nhttps://example.com/\n";
const KEY = "nonsense-key";

/** A body that each call takes, to be spoiled in one place. */
const BODIES: Readonly<Record<string, object>> = {
  startExport: {},
  createLink: { target: "https://example.com/" },
  createLinks: { links: [{ target: "https://example.com/" }] },
  updateLink: { title: "changed" },
  revokeLinks: { codes: ["absent"] },
  createKey: { name: "made", scopes: ["keys"] },
  rotateKey: {},
};
/** A text in these lists is judged in its place: it is no link, and none of the caller's. */
const JUDGED_ALONE = new Set(["revokeLinks codes", "createLinks links"]);
/** A name that nothing has is not found, whatever it looks like. */
const NAMES_SOMETHING = new Set(["importId"]);

let world: ApiWorld;
let keyId: string;
beforeAll(async () => {
  world = await startApiWorld();
  keyId = world.adminKey.split("_")[1] ?? "";
  await world.create({ target: "https://example.com/", alias: "there" });
});
afterAll(() => world.stop());

type Sent = { target: string; headers?: Record<string, string>; body?: string };
type Told = { status: number; code: string; fields: string[] };

async function send({ method, bodies, operationId }: Operation, { target, headers = {}, body }: Sent): Promise<Told> {
  const [type] = Object.keys(bodies ?? {});
  const given = body ?? (type === "text/csv" ? FILE : JSON.stringify(BODIES[operationId]));
  const content = type === undefined ? {} : { "Content-Type": type };
  const options = { method, headers: world.authorized({ ...content, ...headers }) };
  const answer = await world.raw(target, type === undefined ? options : { ...options, body: given });
  const problem = JSON.parse(answer.body) as { code: string; errors?: { field: string }[] };
  return { status: answer.status, code: problem.code, fields: (problem.errors ?? []).map(({ field }) => field) };
}

/** An operation's path to something that is there, as far as an operation can be called in vain. */
const pathOf = (operation: Operation) =>
  fillPath(operation, (name) => (name === "code" ? "there" : operation.path.startsWith("/v1/keys") ? keyId : "absent"));
const parametersOf = (operation: Operation, place: string) =>
  operation.parameters.filter((parameter) => parameter.in === place);
const shown = (value: unknown) => (JSON.stringify(value) ?? "").slice(0, 80);

/** All that there is, to see that nothing came of it. */
async function everything(): Promise<unknown> {
  const [row] = await world.database.sql`
    SELECT (SELECT string_agg(l::text, '|' ORDER BY code) FROM link l) AS links,
           (SELECT string_agg(concat_ws(' ', id, name, scopes, revoked_at, expires_at), '|' ORDER BY id) FROM api_key)
             AS keys,
           (SELECT count(*)::int FROM import) AS imports, (SELECT count(*)::int FROM link_change) AS changes,
           (SELECT count(*)::int FROM idempotency_record) AS records`;
  return row;
}

/** Sends all of it, and returns what was not refused as it should be. */
async function sendAll<T>(all: readonly T[], ask: (one: T) => Promise<Told>, isRight: (one: T, told: Told) => boolean) {
  const before = await everything();
  const answers = await mapConcurrently(all, WIDTH, async (one) => ({ one, told: await ask(one) }));
  expect(await everything()).toEqual(before);
  return answers.filter(({ one, told }) => !isRight(one, told)).map(({ one, told }) => [shown(one), shown(told)]);
}

const keyed = operations.filter(({ scope }) => scope !== null);

describe("nonsense in the query is 400 and names the parameter", () => {
  test.each(operations)("of $operationId", async (operation) => {
    const known = parametersOf(operation, "query").flatMap((parameter) => [
      ...wrongValues(parameter).map((value) => ({ name: parameter.name, query: `${parameter.name}=${value}` })),
      ...wrongPairs(parameter.name).map((query) => ({ name: query.split(/[=&]/)[0] ?? "", query })),
    ]);
    const strange = STRANGE_PAIRS.map((query) => ({ name: decodeURIComponent(query.split("=")[0] ?? ""), query }));
    const wrong = await sendAll(
      [...known, ...strange],
      ({ query }) => send(operation, { target: `${pathOf(operation)}?${query}` }),
      ({ name }, { status, fields }) =>
        NAMES_SOMETHING.has(name) && status === 404 ? true : status === 400 && fields[0] === name.slice(0, 100),
    );
    expect(wrong).toEqual([]);
  });
});

describe("nonsense in the path is 404, or 400 where it is no text", () => {
  test.each(operations.filter(({ path }) => path.includes("{")))("of $operationId", async (operation) => {
    const wrong = await sendAll(
      WRONG_PARTS,
      (part) => send(operation, { target: operation.path.replace(/\{\w+\}/, part) }),
      (_, { status, code }) => [`404 not-found`, `400 invalid-request`].includes(`${status} ${code}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe("nonsense in a header field is 400 and names the field", () => {
  const fields = keyed.flatMap((operation) =>
    parametersOf(operation, "header").map(({ name }) => ({ operation, name, of: operation.operationId })),
  );

  test("is there for every field that the document has", () => {
    expect(new Set(fields.map(({ name }) => name))).toEqual(new Set(Object.keys(WRONG_FIELDS)));
  });

  test.each(fields)("$name of $of", async ({ operation, name }) => {
    const wrong = await sendAll(
      WRONG_FIELDS[name] ?? [],
      (value) => send(operation, { target: pathOf(operation), headers: { [name]: value } }),
      (_, { status, fields }) => status === 400 && fields[0] === name,
    );
    expect(wrong).toEqual([]);
  });
});

describe("nonsense in a body is refused and names the member", () => {
  const withBody = operations.flatMap((operation) => {
    const schema = operation.bodies?.["application/json"]?.schema;
    return schema ? [{ operation, of: operation.operationId, schema }] : [];
  });

  test("has a right body to begin with for every operation that takes one", () => {
    expect(withBody.map(({ of }) => of).sort()).toEqual(Object.keys(BODIES).sort());
  });

  test.each(withBody)("of $of", async ({ operation, of, schema }) => {
    const members = membersOf(schema).flatMap(([name, member]) =>
      wrongMembers(member)
        .filter((value) => !JUDGED_ALONE.has(`${of} ${name}`) || !/^\["[^"]+"\]$/.test(JSON.stringify(value)))
        .map((value) => ({ name, body: { ...BODIES[of], [name]: value } })),
    );
    const more = ["surprise", "constructor", "k".repeat(10_240)].map((name) => ({
      name: name.slice(0, 100),
      body: { ...BODIES[of], [name]: 1 },
    }));
    const wrong = await sendAll(
      [...members, ...more],
      ({ body }) => send(operation, { target: pathOf(operation), body: JSON.stringify(body) }),
      ({ name }, { status, fields }) =>
        status === 413 ||
        ([400, 422].includes(status) && (fields[0] === name || fields[0]?.startsWith(`${name}[`) === true)),
    );
    expect(wrong).toEqual([]);
  });

  test.each(withBody)("of $of as a whole", async ({ operation }) => {
    const wrong = await sendAll(
      operation.bodyIsOptional ? WRONG_BODIES.filter((body) => body !== "") : WRONG_BODIES,
      (body) => send(operation, { target: pathOf(operation), body }),
      (_, { status, fields }) => status === 400 && fields.length > 0,
    );
    expect(wrong).toEqual([]);
  });
});

test("a cursor of keys with any of its bits changed is refused", async () => {
  await world.api("POST", "/v1/keys", { name: "further", scopes: ["keys"] });
  const { json } = await world.api<{ next: string }>("GET", "/v1/keys?limit=1");
  const bytes = Buffer.from(json.next, "latin1");
  const bits = Array.from({ length: bytes.length * 8 }, (_, bit) => bit);
  const ask = (cursor: string) => world.api<{ code: string }>("GET", `/v1/keys?after=${encodeURIComponent(cursor)}`);
  const answers = await mapConcurrently(bits, WIDTH, async (bit) => {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const { status, json } = await ask(changed.toString("latin1"));
    return `${status} ${json.code}`;
  });
  expect(new Set(answers)).toEqual(new Set(["400 invalid-cursor"]));
  expect((await ask(json.next)).status).toBe(200);
});

test("these tests would notice what is taken although it is nonsense, and what leaves something behind", async () => {
  const [listLinks] = operations.filter(({ operationId }) => operationId === "listLinks") as [Operation];
  const [createLink] = operations.filter(({ operationId }) => operationId === "createLink") as [Operation];
  const judge = (_: string, { status }: Told) => status === 400;
  const taken = await sendAll(["limit=5"], (query) => send(listLinks, { target: `/v1/links?${query}` }), judge);
  expect(taken).toHaveLength(1);
  const create = () => send(createLink, { target: "/v1/links", headers: { "Idempotency-Key": KEY } });
  await expect(sendAll(["a link"], create, judge)).rejects.toThrow("toEqual");
});
