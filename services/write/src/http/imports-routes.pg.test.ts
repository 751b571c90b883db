// Bounds on uploads: whoever meets one is told, keeps what was decided, and can go on.
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { type ImportWorld, startImportWorld } from "../imports/import-world.fixture.ts";
import { openFile, sendFile } from "../imports.fixture.ts";

const KEY = "any";
const FILE = "target\nhttps://a.example/\nhttps://b.example/\n";

let world: ImportWorld;
afterEach(() => world.stop());

const statesOf = async () => {
  const answer = await fetch(`${world.url}/v1/imports`);
  const { items } = (await answer.json()) as { items: { state: string }[] };
  return items.map(({ state }) => state);
};
const idIn = (location: string | undefined) => location?.slice("/v1/imports/".length) ?? "none";

describe("an upload that comes no further", () => {
  test("is cut off with 408, keeps its lines, and is continued by its id", async () => {
    world = await startImportWorld({ patienceMs: 150 });
    const slow = openFile(world.url, KEY);
    await slow.write(FILE.slice(0, -5));
    const { status, headers, body } = await slow.answer;
    expect([status, body]).toMatchObject([408, { code: "upload-stalled" }]);
    expect(headers.connection).toBe("close");
    const id = idIn(headers.location);
    expect(body.detail).toContain(id);
    expect(world.counts).toMatchObject({ refusals: { stalled: 1 }, uploads: { interrupted: 1 } });
    expect(await world.outcome()).toMatchObject({ imports: [{ lines: 1, created: 1, done: false }] });
    const again = await sendFile(world.url, KEY, FILE, { query: `?importId=${id}` });
    expect([again.status, again.body]).toMatchObject([201, { id, lines: 2, created: 2, state: "DONE" }]);
    expect((await world.outcome()).links).toHaveLength(2);
  });

  test("before its header leaves nothing behind", async () => {
    world = await startImportWorld({ patienceMs: 50 });
    const slow = openFile(world.url, KEY);
    await slow.write("tar");
    const { status, headers, body } = await slow.answer;
    expect([status, headers.location, body]).toMatchObject([408, undefined, { code: "upload-stalled" }]);
    expect(await statesOf()).toEqual([]);
  });

  test("is cut off though a byte comes now and then", async () => {
    world = await startImportWorld({ patienceMs: 150 });
    const slow = openFile(world.url, KEY);
    await slow.write("target\n");
    let answered = false;
    void slow.answer.finally(() => {
      answered = true;
    });
    // Each byte buys a millisecond, and takes several.
    const drip = setInterval(() => answered || slow.request.write("x"), 5);
    expect((await slow.answer).status).toBe(408);
    clearInterval(drip);
  });
});

describe("a file that is too large", () => {
  test("is refused unread where its length is told", async () => {
    world = await startImportWorld({ maxBytes: 40 });
    const length = { "Content-Length": String(FILE.length) };
    const { status, body } = await sendFile(world.url, KEY, FILE, { headers: length });
    expect([status, body]).toMatchObject([413, { code: "payload-too-large" }]);
    expect(await statesOf()).toEqual([]);
    expect(world.counts.refusals["too-large"]).toBe(1);
  });

  test("is refused where it exceeds the bound, and keeps the lines before", async () => {
    world = await startImportWorld({ maxBytes: 40 });
    const file = openFile(world.url, KEY);
    await file.write(FILE.slice(0, 30));
    await until(async () => (await statesOf()).length !== 0);
    file.end(FILE.slice(30));
    const { status, headers, body } = await file.answer;
    expect([status, body]).toMatchObject([413, { code: "payload-too-large" }]);
    expect(await world.outcome()).toMatchObject({ imports: [{ created: 1, done: false }], links: [{}] });
    expect(headers.location).toMatch(/^\/v1\/imports\//);
    expect(world.counts.refusals["too-large"]).toBe(1);
    expect(await statesOf()).toEqual(["INTERRUPTED"]);
  });
});

test("uploads beyond the places of a process are told 503 and when to come again", async () => {
  world = await startImportWorld({ places: 1 });
  const first = openFile(world.url, KEY);
  await first.write(FILE);
  await until(async () => (await statesOf()).length !== 0);
  const { status, headers, body } = await sendFile(world.url, KEY, FILE);
  expect([status, headers["retry-after"], body]).toMatchObject([503, "2", { code: "overloaded" }]);
  expect(world.counts.refusals.busy).toBe(1);
  first.end();
  expect((await first.answer).status).toBe(201);
  expect((await sendFile(world.url, KEY, FILE)).status).toBe(201);
});
