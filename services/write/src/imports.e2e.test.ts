// Importing files over the API of a service, as its callers do it.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Import, ImportErrorPage, ImportLinkPage, Link } from "@linkfence/contracts";
import { readMetric, until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { CSV, type FileOptions, JSON_LINES, openFile, readPages, sendFile } from "./imports.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

let names = 0;
const newName = () => `import-${names++}`;
const send = (file: string | Buffer, options?: FileOptions) => sendFile(world.write.url, world.adminKey, file, options);
const show = async (id: string) => (await world.api<Import>("GET", `/v1/imports/${id}`)).json;
const linksOf = (id: string) =>
  readPages((path) => world.api<ImportLinkPage>("GET", path), `/v1/imports/${id}/links`) as Promise<
    ImportLinkPage["items"]
  >;
const errorsOf = (id: string) =>
  readPages((path) => world.api<ImportErrorPage>("GET", path), `/v1/imports/${id}/errors`) as Promise<
    ImportErrorPage["items"]
  >;
const linesOf = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `https://example.com/${from + n}\n`).join("");

/** Waits until an import of that many lines is under way, and tells how it stands. */
async function underWay(lines: number): Promise<Import> {
  for (;;) {
    const { json } = await world.api<{ items: Import[] }>("GET", "/v1/imports?limit=1");
    const [newest] = json.items;
    if (newest?.state === "RUNNING" && newest.lines >= lines) return newest;
  }
}

describe("a file of links", () => {
  test("in CSV becomes links with all that its columns say, and errors with their lines", async () => {
    const [alias, other] = [newName(), newName()];
    const file = [
      "target,alias,expiresAt,title,tags,note",
      `https://example.com/a,${alias},2090-01-31T12:00:00+01:00,"A ""title""",one|two,"over`,
      'two lines"',
      "nonsense,,,,,",
      `https://example.com/b,${alias},,,,`,
      `https://example.com/a,${alias},,again,,`,
      `https://example.com/c,${other},,,,`,
      "",
    ].join("\r\n");
    const { status, headers, body } = await send(file);
    expect(status).toBe(201);
    const { id } = body;
    expect(headers.location).toBe(`/v1/imports/${id}`);
    expect(body).toMatchObject({ state: "DONE", lines: 5, created: 2, already: 1, refused: 2, errorsTruncated: false });
    expect(body.bytes).toBe(Buffer.byteLength(file));
    expect(body.errors).toMatchObject([
      { line: 4, field: "target", rule: "unparsable", code: "invalid-target" },
      { line: 5, field: "alias", rule: "alias-taken", code: "alias-taken" },
    ]);
    expect(await errorsOf(id)).toEqual(body.errors);
    expect(await linksOf(id)).toEqual([
      { line: 2, code: alias, shortUrl: `https://sho.example/${alias}` },
      { line: 7, code: other, shortUrl: `https://sho.example/${other}` },
    ]);
    const { json } = await world.api<Link>("GET", `/v1/links/${alias}`);
    expect(json).toMatchObject({
      ...{ target: "https://example.com/a", kind: "ALIAS", expiresAt: "2090-01-31T11:00:00.000000Z" },
      ...{ title: 'A "title"', tags: ["one", "two"], note: "over\r\ntwo lines", owner: "admin" },
    });
    const { errors: _errors, errorsTruncated: _truncated, ...told } = body;
    expect(await show(id)).toEqual(told);
  });

  test.each([JSON_LINES, "application/x-ndjson; charset=utf-8"])("in JSON, as %s, too", async (type) => {
    const alias = newName();
    const good = JSON.stringify({ target: "https://example.com/", alias, tags: ["a|b"], expiresInSeconds: 60 });
    const { status, body } = await send(`${good}\n\n{"target":1}\n{"alias":"x"}`, { type });
    expect([status, body]).toMatchObject([201, { format: "jsonl", lines: 3, created: 1, refused: 2 }]);
    expect(body.errors).toMatchObject([
      { line: 3, field: "target", rule: "type" },
      { line: 4, field: "target", rule: "required" },
    ]);
    expect((await world.api<Link>("GET", `/v1/links/${alias}`)).json).toMatchObject({ tags: ["a|b"], kind: "ALIAS" });
  });

  test("of another product keeps its aliases, names what it leaves out, and brings no clicks with it", async () => {
    const alias = newName();
    const file = `keyword,url,title,timestamp,ip,clicks\n${alias},https://example.com/,T,2024-03-01 10:00:00,192.0.2.7,12\n`;
    const { status, body } = await send(file, { query: "?mapping=yourls" });
    expect([status, body]).toMatchObject([201, { mapping: "yourls", ignoredColumns: ["timestamp", "ip", "clicks"] }]);
    expect((await world.api<Link>("GET", `/v1/links/${alias}`)).json).toMatchObject({ title: "T", version: 1 });
    // There is no click-ingest beside this test: nothing could have been told to it.
    expect((await world.api("GET", `/v1/links/${alias}/stats`)).status).toBe(503);
  });

  test("on trial creates nothing, and tells what an import then does", async () => {
    const [taken, free] = [newName(), newName()];
    await world.create({ target: "https://example.com/", alias: taken });
    const file = [
      ...["target,alias", "https://example.com/1,", "nonsense,", `https://example.com/2,${taken}`],
      ...[`https://example.com/3,${free}`, `https://example.com/3,${free}`, `https://example.com/4,${free}`],
    ].join("\n");
    const before = await world.linkCount();
    const trial = await send(file, { query: "?dryRun=true" });
    expect([trial.status, trial.body.dryRun]).toEqual([200, true]);
    expect(await world.linkCount()).toBe(before);
    expect(await linksOf(trial.body.id)).toEqual([]);
    expect(await world.database.sql`SELECT FROM import_alias`).toHaveLength(0);
    const real = await send(file);
    expect(real.status).toBe(201);
    const counts = ({ lines, created, already, refused, errors }: typeof real.body) => ({
      ...{ lines, created, already, refused, errors },
    });
    expect(counts(real.body)).toMatchObject({ lines: 6, created: 2, already: 1, refused: 3 });
    expect(counts(trial.body)).toEqual(counts(real.body));
  });

  test("tells the first thousand errors itself, and all of them page by page", async () => {
    const file = `target\n${"nonsense\n".repeat(1100)}`;
    const { body } = await send(file);
    expect([body.refused, body.errors.length, body.errorsTruncated]).toEqual([1100, 1000, true]);
    const lines = (await errorsOf(body.id)).map(({ line }) => line);
    expect(lines).toEqual(Array.from({ length: 1100 }, (_, n) => n + 2));
    const { json } = await world.api<ImportErrorPage>("GET", `/v1/imports/${body.id}/errors?limit=2&after=3`);
    expect([json.items.map(({ line }) => line), json.next]).toEqual([[4, 5], 5]);
  });
});

describe("while a file is on its way", () => {
  test("its progress is told, the same import is refused with 409, and what is broken off can be continued", async () => {
    const options = { key: newName() };
    const lines = linesOf(1200);
    const file = openFile(world.write.url, world.adminKey, options);
    await file.write(`target\n${lines}`);
    const running = await underWay(1000);
    expect(running).toMatchObject({ state: "RUNNING", finishedAt: null });
    for (const again of [options, { query: `?importId=${running.id}` }]) {
      const { status, headers, body } = await send("target\n", again);
      expect([status, headers["retry-after"], body]).toMatchObject([409, "2", { code: "import-in-use" }]);
    }
    file.destroy();
    await until(async () => (await show(running.id)).state !== "RUNNING");
    expect(await show(running.id)).toMatchObject({ state: "INTERRUPTED", lines: 1200 });
    const { status, body } = await send(`target\n${lines}${linesOf(10, 1200)}`, options);
    expect([status, body]).toMatchObject([201, { id: running.id, lines: 1210, created: 1210 }]);
    expect((await linksOf(running.id)).map(({ line }) => line)).toEqual(Array.from({ length: 1210 }, (_, n) => n + 2));
  });
});

describe("the same file again", () => {
  test("under its key or its id is answered as before, and creates nothing", async () => {
    const key = newName();
    const file = `target\n${linesOf(3)}`;
    const first = await send(file, { key });
    const before = await world.linkCount();
    for (const options of [{ key }, { key: `"${key}"` }, { query: `?importId=${first.body.id}` }]) {
      const again = await send(file, options);
      expect([again.status, again.headers["idempotency-replayed"]]).toEqual([200, "true"]);
      expect(again.body).toEqual(first.body);
    }
    expect(await world.linkCount()).toBe(before);
  });

  test.each<[string, string, FileOptions]>([
    ["another line", `target\n${linesOf(2)}https://example.com/other\n`, {}],
    ["fewer lines", `target\n${linesOf(2)}`, {}],
    ["more lines", `target\n${linesOf(4)}`, {}],
    ["nothing", "", {}],
    ["another mapping", `target\n${linesOf(3)}`, { query: "?mapping=kutt" }],
    ["a trial run", `target\n${linesOf(3)}`, { query: "?dryRun=true" }],
    ["another format", `target\n${linesOf(3)}`, { type: JSON_LINES }],
  ])("with %s is another file, and refused with 422", async (_what, file, options) => {
    const key = newName();
    await send(`target\n${linesOf(3)}`, { key });
    const before = await world.linkCount();
    const { status, body } = await send(file, { ...options, key });
    expect([status, body]).toMatchObject([422, { code: "import-content-differs" }]);
    expect(await world.linkCount()).toBe(before);
  });

  test("cannot be asked for by key and id at once, nor by an id that is none", async () => {
    const both = await send("target\n", { key: newName(), query: "?importId=00000000-0000-4000-8000-000000000000" });
    expect([both.status, both.body]).toMatchObject([400, { code: "invalid-request" }]);
    for (const id of ["00000000-0000-4000-8000-000000000000", "nonsense"])
      expect((await send("target\n", { query: `?importId=${id}` })).status).toBe(404);
  });
});

describe("a file that cannot be read", () => {
  const million = Array.from({ length: 1_000_000 }, (_, n) => `c${n}`).join(",");

  test.each<[string, string | Buffer, FileOptions, number]>([
    ["is empty", "", {}, 400],
    ["has no header but blank lines", "\n \r\n\n", {}, 400],
    ["lacks the column of the target", "alias\nspring\n", {}, 400],
    ["names a column twice", "target,target\na,b\n", {}, 400],
    ["has a column that is unknown", "target,clicks\na,1\n", {}, 400],
    ["has a million columns", `target,${million}\n`, {}, 400],
    ["has a header that is not UTF-8", Buffer.from([0xff, 0xfe, 0x61, 0x0a]), {}, 400],
    ["is in UTF-16", Buffer.from("\uFEFFtarget\nhttps://example.com/\n", "utf16le"), {}, 400],
    ["has NUL in its header", "tar\0get\n", {}, 400],
    ["has a quote in its header that never ends", `"target\n${linesOf(10)}`, {}, 400],
    ["has the line breaks of an old Macintosh", "target\rhttps://example.com/\r", {}, 400],
    ["is no text", "target\n", { type: "application/octet-stream" }, 415],
    ["is compressed", "target\n", { headers: { "Content-Encoding": "gzip" } }, 415],
    ["is in another encoding", "target\n", { type: `${CSV}; charset=latin1` }, 415],
    ["has a mapping that is none", "target\n", { query: "?mapping=tinyurl" }, 400],
    ["has a parameter that is none", "target\n", { query: "?dry=true" }, 400],
    ["has a key that is none", "target\n", { key: "a,b" }, 400],
  ])("since it %s, is refused and leaves nothing behind", async (_what, file, options, expected) => {
    const before = await world.linkCount();
    const { status } = await send(file, options);
    expect(status).toBe(expected);
    const { json } = await world.api<{ items: Import[] }>("GET", "/v1/imports?limit=100");
    expect(json.items.filter(({ state }) => state !== "DONE")).toEqual([]);
    expect(await world.linkCount()).toBe(before);
  });

  test.each<[string, string | Buffer, string, number]>([
    ["a header alone", "target\n", CSV, 0],
    ["a header without a line break", "target", CSV, 0],
    ["no line of JSON", "", JSON_LINES, 0],
    ["a byte order mark", "\uFEFFtarget\nhttps://example.com/\n", CSV, 1],
    ["a mark, in JSON", '\uFEFF{"target":"https://example.com/"}\n', JSON_LINES, 1],
  ])("is not one with %s", async (_what, file, type, lines) => {
    const { status, body } = await send(file, { type });
    expect([status, body]).toMatchObject([201, { state: "DONE", lines, created: lines, refused: 0 }]);
  });

  test("is not one whose lines are all bad: each is refused for itself", async () => {
    const file = Buffer.concat(
      [
        "target\n",
        [0xff, 0x0a],
        "a\0b\n",
        '"open\n',
        "x".repeat(10_000_000),
        "\n",
        "a,b\n",
        "https://example.com/\n",
      ].map((part) => Buffer.from(part as string)),
    );
    const { status, body } = await send(file);
    expect([status, body]).toMatchObject([201, { lines: 6, created: 1, refused: 5 }]);
    expect(body.errors.map(({ line, rule }) => [line, rule])).toEqual([
      ...[
        [2, "utf-8"],
        [3, "control-character"],
        [4, "open-quote"],
        [5, "too-long"],
        [6, "field-count"],
      ],
    ]);
  });
});

test("the service counts uploads, lines and what met a bound", async () => {
  const before = await readMetric(world.write, 'linkfence_import_lines_total{outcome="created"}');
  const uploads = await readMetric(world.write, 'linkfence_imports_total{outcome="done"}');
  const long = await readMetric(world.write, 'linkfence_import_refusals_total{reason="long-line"}');
  await send(`target\n${linesOf(3)}${"x".repeat(40_000)}\n`);
  expect(await readMetric(world.write, 'linkfence_import_lines_total{outcome="created"}')).toBe(before + 3);
  expect(await readMetric(world.write, 'linkfence_imports_total{outcome="done"}')).toBe(uploads + 1);
  expect(await readMetric(world.write, 'linkfence_import_refusals_total{reason="long-line"}')).toBe(long + 1);
  for (const name of ["linkfence_imports_running", "linkfence_import_errors_dropped_total"])
    expect(await readMetric(world.write, name)).toBe(0);
  for (const reason of ["busy", "too-large", "stalled", "in-use"])
    await readMetric(world.write, `linkfence_import_refusals_total{reason="${reason}"}`);
});
