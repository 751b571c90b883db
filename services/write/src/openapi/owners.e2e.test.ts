// Two owners, every operation, every kind of thing that it can reach; and every operation with every scope but its own.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { SCOPES } from "@linkfence/contracts";
import { type ApiWorld, startApiWorld } from "../api-world.fixture.ts";
import { type Exporter, startIdleExporter } from "../exporter.fixture.ts";
import { fillPath, type Operation, operations } from "./operations.fixture.ts";
import { type Row, rows, type Thing } from "./owner-rows.fixture.ts";

type Reaching = Extract<Row, { things: unknown }>;

let world: ApiWorld;
let exporter: Exporter;
let alice: string;
let bob: string;
beforeAll(async () => {
  exporter = await startIdleExporter();
  world = await startApiWorld({ CLICK_INGEST_URL: exporter.url });
  // Every scope but `admin`, whose holder manages the keys of all owners.
  const scopes = SCOPES.filter((scope) => scope !== "admin");
  alice = await world.addKey("alice", scopes);
  bob = await world.addKey("bob", scopes);
});
afterAll(async () => {
  await world.stop();
  await exporter.stop();
});

/** Asks for a thing by an operation, with a key. */
function askFor(operation: Operation, row: Reaching, thing: Thing, key: string) {
  const { params = {}, query, body, file } = row.ask?.(thing) ?? {};
  const path = fillPath(operation, (name) => params[name] ?? thing.id);
  const target = query === undefined ? path : `${path}?${query}`;
  return file === undefined
    ? world.api(operation.method, target, body, key)
    : sendText(operation.method, target, file, key);
}

async function sendText(method: string, target: string, body: string, key: string) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "text/csv" };
  const answer = await world.raw(target, { method, headers, body });
  return { status: answer.status, json: JSON.parse(answer.body) as Record<string, unknown> };
}

/** What a stranger was answered, in the words of a row. */
function inWords({ status, json }: { status: number; json: Record<string, unknown> }, thing: Thing): string {
  if (status >= 400) return String(json.code);
  const [item] = (json.results ?? []) as { status: number; problem?: { code: string } }[];
  if (item) return item.status === 404 ? `item-${item.problem?.code}` : `item ${item.status}`;
  return (JSON.stringify(json) ?? "").includes(JSON.stringify(thing.id)) ? "shown" : "hidden";
}

const table = operations.flatMap((operation) => {
  const row = rows[operation.operationId];
  return row && "things" in row
    ? row.things.map((make) => ({ name: operation.operationId, operation, row, make }))
    : [];
});

describe("what belongs to somebody else", () => {
  test("is thought of in every operation, and in no operation that is none", () => {
    expect(Object.keys(rows).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
  });

  test("can be named by every operation with a path parameter, so that none of those may do without a thing", () => {
    const careless = operations.filter(({ operationId, scope, path }) => {
      const row = rows[operationId];
      return scope !== null && path.includes("{") && row && !("things" in row);
    });
    expect(careless.map(({ operationId }) => operationId)).toEqual([]);
  });

  test.each(table)("$name neither shows nor changes it", async ({ operation, row, make }) => {
    const thing = await make(world, alice);
    const before = await thing.look();
    expect([thing.kind, inWords(await askFor(operation, row, thing, bob), thing)]).toEqual([thing.kind, row.stranger]);
    expect(await thing.look()).toEqual(before);
    // The same request of its owner goes through: it was the owner that was refused, not the request.
    const own = await askFor(operation, row, thing, alice);
    expect(own.status).toBe(row.owner);
    if (row.stranger === "hidden") expect(inWords(own, thing)).toBe("shown");
  });

  test("would be found by these tests, were the stranger its owner", async () => {
    const found = [];
    for (const { operation, row, make } of table) {
      if (row.stranger === "alias-taken") continue;
      const thing = await make(world, alice);
      if (inWords(await askFor(operation, row, thing, alice), thing) !== row.stranger) found.push(thing);
    }
    expect(found).toHaveLength(table.filter(({ row }) => row.stranger !== "alias-taken").length);
  });
});

describe("a key", () => {
  const keyed = operations.filter(({ scope }) => scope !== null);
  const open = operations.filter(({ scope }) => scope === null);
  const send = (operation: Operation, key: string | null) =>
    world.raw(
      fillPath(operation, () => "absent"),
      { method: operation.method, headers: key === null ? {} : { Authorization: `Bearer ${key}` } },
    );

  test.each(keyed)("is needed for $operationId, with the scope $scope and no other", async (operation) => {
    expect((await send(operation, null)).status).toBe(401);
    const others = SCOPES.filter((scope) => scope !== operation.scope && scope !== "admin");
    const refused = await send(operation, await world.addKey("carol", others));
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([403, "insufficient-scope"]);
    const { status } = await send(operation, await world.addKey("carol", [String(operation.scope)]));
    expect([401, 403]).not.toContain(status);
  });

  test.each(open)("is not needed for $operationId", async (operation) => {
    expect([401, 403]).not.toContain((await send(operation, null)).status);
  });
});
