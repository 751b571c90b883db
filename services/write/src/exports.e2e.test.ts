// Exports over the API, with a click-ingest that writes them: who gets what of a file, and what becomes of odd requests.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { parse as parseDisposition } from "content-disposition";
import { CLICKS, codeOf, type ExportApi, type Job, OWNER, openExportApi } from "./exports.fixture.ts";

let api: ExportApi;
let job: Job;
let text: string;

beforeAll(async () => {
  api = await openExportApi();
  job = await api.ended(await api.order({}));
  text = (await api.get(job)).body;
});
afterAll(() => api.close());

describe("an order", () => {
  test("is answered at once with where it is, and comes to its end", async () => {
    const headers = { Authorization: `Bearer ${api.zoe}`, "Content-Type": "application/json" };
    const answer = await api.world.raw("/v1/exports", {
      method: "POST",
      headers,
      body: '{"format":"jsonl","gzip":true}',
    });
    const started = JSON.parse(answer.body) as Job;
    expect(answer.status).toBe(202);
    expect(answer.headers.location).toBe(`/v1/exports/${started.id}`);
    expect(await api.ended(started)).toMatchObject({ state: "SUCCEEDED", rows: CLICKS, codes: null, format: "jsonl" });
  });

  test("under the same key is the same export, also where its end is not named, and another body is refused", async () => {
    const headers = {
      Authorization: `Bearer ${api.zoe}`,
      "Content-Type": "application/json",
      "Idempotency-Key": '"k1"',
    };
    const post = (body: string) => api.world.raw("/v1/exports", { method: "POST", headers, body });
    const [first, second] = [await post("{}"), await post("{}")];
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(JSON.parse(second.body).id).toBe(JSON.parse(first.body).id);
    expect([first, second].map((each) => each.headers["idempotency-replayed"])).toEqual([undefined, "true"]);
    const other = await post('{"gzip":true}');
    expect([other.status, codeOf(other)]).toEqual([422, "idempotency-key-reused"]);
  });

  test.each([
    [{ codes: ["no/code"] }, "codes[0]", "code"],
    [{ codes: ["absent-code"] }, "codes[0]", "exists"],
    [{ codes: [] }, "codes", "minItems"],
    [{ from: "yesterday" }, "from", "date-time"],
    [{ from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" }, "from", "order"],
    [{ from: "2200-01-01T00:00:00Z" }, "from", "range"],
    [{ format: "xlsx" }, "format", "enum"],
    [{ gzip: "yes" }, "gzip", "type"],
    [{ file: "../../etc/passwd" }, "file", "additionalProperties"],
  ])("as %j is refused, with field and rule", async (body, field, rule) => {
    const { status, json } = await api.world.api("POST", "/v1/exports", body, api.zoe);
    expect([status, json.errors]).toEqual([400, [expect.objectContaining({ field, rule })]]);
  });

  test("is refused where as many of the owner's wait as may, with when to come again", async () => {
    const carol = await api.world.addKey("carol", ["exports"]);
    await api.exporter.stats.sql`
      INSERT INTO export_job (owner, ordered_by, digest, to_ms, format, gzip, not_before)
      SELECT 'carol', 'k', repeat('0', 64), 1, 'csv', false, 'infinity' FROM generate_series(1, 100)`;
    const headers = { Authorization: `Bearer ${carol}`, "Content-Type": "application/json" };
    const full = await api.world.raw("/v1/exports", { method: "POST", headers, body: "{}" });
    expect([full.status, codeOf(full), full.headers["retry-after"]]).toEqual([429, "export-queue-full", "2"]);
    expect((await api.order({})).state).toBe("PENDING");
  });

  test("for another owner's link is refused as for one that does not exist", async () => {
    const refused = async (codes: string[]) => (await api.world.api("POST", "/v1/exports", { codes }, api.bob)).json;
    expect({ ...(await refused([api.code])), instance: "" }).toEqual({ ...(await refused(["absent"])), instance: "" });
    expect(await api.ended(await api.order({ codes: [api.code] }))).toMatchObject({ rows: CLICKS, codes: [api.code] });
  });
});

describe("exports", () => {
  test("are listed page by page, newest first, each owner's to that owner", async () => {
    const made = [await api.order({}, api.bob), await api.order({}, api.bob), await api.order({}, api.bob)]
      .map(({ id }) => id)
      .reverse();
    type Page = { items: Job[]; next: string | null };
    const read = async (query: string) =>
      (await api.world.api<Page>("GET", `/v1/exports?${query}`, undefined, api.bob)).json;
    const first = await read("limit=2");
    const second = await read(`limit=2&after=${first.next}`);
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(made);
    expect(second.next).toBeNull();
    const stolen = await api.world.api("GET", `/v1/exports?after=${first.next}`, undefined, api.zoe);
    expect([stolen.status, stolen.json.code]).toEqual([400, "invalid-cursor"]);
  });

  test("that have ended cannot be cancelled", async () => {
    const { status, json } = await api.world.api("DELETE", `/v1/exports/${job.id}`, undefined, api.zoe);
    expect([status, json.code]).toEqual([409, "export-finished"]);
    expect((await api.get(job)).status).toBe(200);
  });
});

describe("a download", () => {
  test("has the file under a name that says what it is, whatever the owner is called", async () => {
    const answer = await api.get(job);
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/csv; charset=utf-8; header=present");
    expect(answer.headers["content-length"]).toBe(String(job.bytes));
    expect(answer.headers["accept-ranges"]).toBe("bytes");
    expect(answer.body.split("\r\n")).toHaveLength(CLICKS + 2);
    const { type, parameters } = parseDisposition(answer.headers["content-disposition"] ?? "");
    expect([type, Object.keys(parameters)]).toEqual(["attachment", ["filename", "filename*"]]);
    const name = decodeURIComponent(parameters["filename*"] ?? "");
    expect(name).toMatch(/^UTF-8''clicks-Zoë-Ω-;-filename=evil\.exe-\.\.-x-until-\d{4}-\d\d-\d\d-[0-9a-f]{8}\.csv$/);
    // It is written down once all of it is sent, which its client may know before.
    const record = await api.world.write.logged(({ requestId }) => requestId === answer.headers["x-request-id"]);
    expect(record).toMatchObject({
      message: "download",
      export: job.id,
      owner: OWNER,
      outcome: "sent",
      bytes: job.bytes,
    });
    expect(api.world.write.output()).not.toContain(api.zoe);
  });

  test("by HEAD has the same fields and no file", async () => {
    const [whole, head] = [await api.get(job), await api.get(job, {}, { method: "HEAD" })];
    expect([head.status, head.body]).toEqual([200, ""]);
    for (const name of ["content-length", "content-type", "etag", "accept-ranges", "content-disposition"])
      expect(head.headers[name]).toBe(whole.headers[name]);
  });

  test.each([
    ["bytes=0-4", 206, [0, 5]],
    ["bytes=5-", 206, [5]],
    ["bytes=-4", 206, [-4]],
    ["bytes=0-0", 206, [0, 1]],
    ["bytes=0-999999", 206, [0]],
    ["bytes=0-4,2-8", 206, [0, 9]],
    ["bytes=0-1,5-6", 200, [0]],
    ["lines=0-1", 200, [0]],
    ["bytes", 200, [0]],
    ["bytes=a-b", 200, [0]],
    ["bytes=4-2", 416, null],
    ["bytes=-0", 416, null],
    ["bytes=999999-", 416, null],
    ["bytes=999999-,888888-", 416, null],
  ] as const)("with the range %s is answered %i, and with those bytes alone", async (range, status, slice) => {
    const answer = await api.get(job, { Range: range });
    expect([range, answer.status]).toEqual([range, status]);
    if (slice) expect(answer.body).toBe(text.slice(...slice));
    else
      expect([codeOf(answer), answer.headers["content-range"]]).toEqual([
        "range-not-satisfiable",
        `bytes */${job.bytes}`,
      ]);
  });

  test("goes on where it ended, of the same file alone", async () => {
    const etag = (await api.get(job)).headers.etag ?? "";
    expect((await api.get(job, { Range: "bytes=5-", "If-Range": etag })).status).toBe(206);
    expect(await api.get(job, { Range: "bytes=5-", "If-Range": '"other"' })).toMatchObject({ status: 200, body: text });
    expect(await api.get(job, { "If-None-Match": etag })).toMatchObject({ status: 304, body: "" });
    const changed = await api.get(job, { "If-Match": '"other"' });
    expect([changed.status, codeOf(changed)]).toEqual([412, "precondition-failed"]);
  });

  test("of another owner's export, or of what is none, is 404, and has nothing of a file", async () => {
    const foreign = await api.get(job, {}, { key: api.bob });
    expect([foreign.status, codeOf(foreign)]).toEqual([404, "not-found"]);
    expect((await api.get(job, {}, { key: api.bob, method: "HEAD" })).status).toBe(404);
    for (const id of [
      "..",
      "..%2f..%2fetc%2fpasswd",
      "%2e%2e%2f",
      "%00",
      job.id.toUpperCase(),
      `${job.id}%20`,
      `${job.id}.part`,
    ])
      expect([id, (await api.get({ id })).status]).toEqual([id, 404]);
  });

  test("of an export that has no file is refused", async () => {
    await api.exporter.stats.sql`ALTER TABLE click RENAME TO hidden`;
    try {
      const waiting = await api.order({});
      const answer = await api.get(waiting);
      expect([answer.status, codeOf(answer)]).toEqual([409, "not-ready"]);
      expect((await api.world.api("DELETE", `/v1/exports/${waiting.id}`, undefined, api.zoe)).status).toBeLessThan(500);
    } finally {
      await api.exporter.stats.sql`ALTER TABLE hidden RENAME TO click`;
    }
  });
});
