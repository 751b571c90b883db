import { connect } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { listen } from "@linkfence/service-shell";
import request from "supertest";
import { openApp } from "./test-support/open-app.ts";
import { newClickId, SAMPLE_AT, sampleClick, sampleClicks } from "./test-support/sample-clicks.ts";

describe("POST /v1/clicks", () => {
  test("queues the good clicks and answers with counts that add up", async () => {
    const { post, offered, ledger } = openApp();
    const good = sampleClicks(3);
    const bad = [{ ...sampleClick(), id: "not-a-uuid" }, { ...sampleClick(), extra: 1 }, null];
    const answer = await post([...good, ...bad]);
    expect(answer.status).toBe(200);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.body).toEqual({ received: 6, inserted: 3, duplicate: 0, deadLettered: 3, refused: 0 });
    expect(offered).toEqual([good]);
    expect(ledger.read()).toMatchObject({ received: 6, inserted: 3, inFlight: 0, deadLettered: { id: 1, shape: 2 } });
  });

  test("says why clicks are dead letters, and by whom they were sent, in the log", async () => {
    const { post, logger } = openApp();
    await post([{ ...sampleClick(), code: "no" }]);
    expect(logger.entries).toEqual([
      {
        level: "warn",
        message: "clicks are dead letters",
        fields: { sender: "test", reasons: { code: 1 }, noRoomFor: 0 },
      },
    ]);
  });

  test("queues nothing where every click is a dead letter", async () => {
    const { post, offered } = openApp({ outcome: { kind: "given-back", reason: "deadline" } });
    expect((await post(["x", 1, []])).body).toMatchObject({ received: 3, inserted: 0, deadLettered: 3, refused: 0 });
    expect(offered).toEqual([]);
  });

  test("keeps a dead letter as it came, with its id as far as it is a text", async () => {
    const { post, dead } = openApp();
    const bad = { ...sampleClick(), id: "not\0a-uuid", extra: "\ud800" };
    await post([bad, { id: 7 }, "text", { ...sampleClick(), code: "no" }]);
    expect(dead.map(({ payload }) => JSON.parse(payload))).toEqual([bad, { id: 7 }, "text", expect.anything()]);
    expect(dead.map(({ clickId }) => clickId)).toEqual(["not\ufffda-uuid", null, null, expect.any(String)]);
    expect(dead.at(-1)).toMatchObject({ reason: "code", sqlstate: null, detail: expect.stringMatching(/^code: /) });
    for (const { payload } of dead) expect(payload).toMatch(/^[\x20-\x7e]*$/);
  });

  test("keeps of what is nested too deeply that it came, and its neighbours are stored", async () => {
    const { app, ledger, dead } = openApp();
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const text = JSON.stringify({ sender: "test", clicks: [...sampleClicks(2), "DEEP"] }).replace('"DEEP"', deep);
    const answer = await request(app).post("/v1/clicks").type("json").send(text);
    expect(answer.body).toEqual({ received: 3, inserted: 2, duplicate: 0, deadLettered: 1, refused: 0 });
    expect(dead).toMatchObject([{ reason: "shape", payload: expect.stringContaining("nested too deeply") }]);
    expect(ledger.read()).toMatchObject({ received: 3, inFlight: 0 });
  });

  test("answers late clicks and those without room among the dead as refused, by reason", async () => {
    const late = sampleClicks(2);
    const { post, ledger, refused } = openApp({
      outcome: { kind: "stored", inserted: 1, duplicate: 1, buried: 0, late, noRoom: [] },
      bury: async (_sender, letters) => letters.map((_, index) => index === 0),
    });
    const answer = await post([...sampleClicks(4), "x", "y", "z"]);
    expect(answer.body).toEqual({ received: 7, inserted: 1, duplicate: 1, deadLettered: 1, refused: 4 });
    expect(ledger.read()).toMatchObject({ inFlight: 0, refused: { late: 2, "dead-letters-full": 2 } });
    expect(refused).toMatchObject([
      ...late.map(({ at }) => ({ reason: "late", at })),
      { reason: "dead-letters-full", payload: '"y"' },
      { reason: "dead-letters-full", payload: '"z"' },
    ]);
  });

  test("gives a batch back whole whose dead letters cannot be kept", async () => {
    const { post, ledger } = openApp({ bury: () => Promise.reject(new Error("away")) });
    const answer = await post([...sampleClicks(2), "bad"]);
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    expect(ledger.read()).toMatchObject({ received: 3, inserted: 0, inFlight: 0, givenBack: { unburied: 3 } });
  });

  test.each([
    ["no object", "text", "shape"],
    ["a list", [], "shape"],
    ["a missing field", { ...sampleClick(), code: undefined }, "shape"],
    ["a field too many", { ...sampleClick(), ip: "192.0.2.1" }, "shape"],
    ["a UUIDv4", { ...sampleClick(), id: "7f0c1f1e-2f4b-4c3d-8a6b-1c2d3e4f5a6b" }, "id"],
    ["an id in capitals", { ...sampleClick(), id: newClickId().toUpperCase() }, "id"],
    ["an id of another time", sampleClick({ id: newClickId(SAMPLE_AT - 1) }), "id-time"],
    ["a code with a space", sampleClick({ code: "a b" }), "code"],
    ["version 0", sampleClick({ version: 0 }), "version"],
    ["a version that is no whole number", sampleClick({ version: 1.5 }), "version"],
    ["a version beyond 2^53", sampleClick({ version: 1e300 }), "version"],
    ["the year 300000", { ...sampleClick(), at: 9_404_726_400_000_000 }, "at"],
    ["a time that is a text", { ...sampleClick(), at: "now" }, "at"],
    ["a referrer that is too long", sampleClick({ referrerHost: "a".repeat(256) }), "referrer-host"],
    ["a user agent that is too long", sampleClick({ userAgent: "a".repeat(513) }), "user-agent"],
    ["a prefetch that is no truth", { ...sampleClick(), prefetch: "yes" }, "prefetch"],
    ["a country of three letters", sampleClick({ country: "DEU" }), "country"],
    ["an owner without a name", sampleClick({ owner: "" }), "owner"],
    ["a day after the next one", sampleClick({ at: Date.now() + 2 * 86_400_000 }), "id-time"],
  ])("keeps a click with %s as a dead letter, and its neighbour is stored", async (_case, bad, reason) => {
    const { post, ledger, dead } = openApp();
    const account = { received: 2, inserted: 1, duplicate: 0, deadLettered: 1, refused: 0 };
    expect((await post([sampleClick(), bad])).body).toEqual(account);
    expect(ledger.read().deadLettered).toMatchObject({ [reason]: 1 });
    expect(dead).toMatchObject([{ reason, payload: JSON.stringify(bad) }]);
  });

  test("cleans what a browser sent and does not refuse it", async () => {
    const { app, offered } = openApp();
    const click = sampleClick();
    const text = JSON.stringify({ sender: "test", clicks: [{ ...click, userAgent: "UA", referrerHost: "HOST" }] })
      .replace("UA", "a\\u0000b\\ud800c")
      .replace("HOST", "\\udc00");
    const answer = await request(app).post("/v1/clicks").type("json").send(text);
    expect(answer.body).toMatchObject({ inserted: 1, deadLettered: 0, refused: 0 });
    expect(offered).toEqual([[{ ...click, userAgent: "a\ufffdb\ufffdc", referrerHost: "\ufffd" }]]);
  });

  test("takes a full batch of the longest clicks", async () => {
    const { post } = openApp();
    const longest = sampleClicks(1000, {
      code: "c".repeat(32),
      version: Number.MAX_SAFE_INTEGER,
      referrerHost: "ÿ".repeat(255),
      userAgent: "ÿ".repeat(512),
    });
    expect((await post(longest)).body).toMatchObject({ received: 1000, inserted: 1000 });
  });

  test.each([
    ["full", "overloaded"],
    ["deadline", "unavailable"],
    ["stopping", "unavailable"],
    ["abandoned", "unavailable"],
  ] as const)(
    "answers 503 when the intake gives the batch back for %s, and counts all of it so",
    async (reason, code) => {
      const { post, ledger } = openApp({ outcome: { kind: "given-back", reason } });
      const answer = await post([...sampleClicks(2), "bad"]);
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
      expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
      expect(answer.body.code).toBe(code);
      expect(ledger.read()).toMatchObject({ received: 3, inFlight: 0, givenBack: { [reason]: 3 } });
    },
  );

  test("ends the connection of a sender whom it tells that it stops", async () => {
    const { post } = openApp({ outcome: { kind: "given-back", reason: "stopping" } });
    expect((await post(sampleClicks(1))).headers.connection).toBe("close");
  });

  test.each([
    ["no clicks", { sender: "test", clicks: [] }, "clicks"],
    ["too many clicks", { sender: "test", clicks: Array.from({ length: 1001 }, () => 0) }, "clicks"],
    ["no sender", { clicks: [1] }, "sender"],
    ["a sender that no log can carry", { sender: "a\0b", clicks: [1] }, "sender"],
    ["an unknown field", { sender: "test", clicks: [1], more: 1 }, "more"],
    ["a list", [], "body"],
  ])("answers 400 to a batch with %s and names the field", async (_case, body, field) => {
    const { app, ledger } = openApp();
    const answer = await request(app).post("/v1/clicks").send(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: "invalid-request", errors: [{ field }] });
    expect(ledger.read().received).toBe(0);
  });

  test("answers 400 to what is not JSON, 415 to what does not say it is, 413 to more than 2 MiB", async () => {
    const { app } = openApp();
    const send = (type: string, text: string) => request(app).post("/v1/clicks").set("Content-Type", type).send(text);
    for (const text of ["{", '"x"', "7"])
      expect((await send("application/json", text)).body).toMatchObject({
        status: 400,
        errors: [{ field: "body", rule: "json" }],
      });
    expect((await send("text/plain", "{}")).body).toMatchObject({ status: 415, code: "unsupported-media-type" });
    for (const charset of ["charset=utf-16", "CHARSET=UTF-32", 'charset="utf-16le"', "charset = utf-8"])
      expect((await send(`application/json; ${charset}`, "{}")).body).toMatchObject({ status: 415 });
    expect((await send('Application/JSON ;CharSet="UTF-8"', "{}")).body).toMatchObject({ status: 400 });
    const large = JSON.stringify({ sender: "x".repeat(2 * 1024 * 1024), clicks: [] });
    expect((await send("application/json", large)).body).toMatchObject({ status: 413, code: "payload-too-large" });
  });
});

describe("a report of dropped clicks", () => {
  const dropped = { incarnation: "one", since: 0, totals: [{ reason: "ring-full", total: 3 }] };
  const send = (app: Parameters<typeof request>[0], report: unknown) =>
    request(app)
      .post("/v1/clicks")
      .send({ sender: "test", clicks: [sampleClick()], dropped: report });

  test("is taken once its batch is stored, and not where that is given back", async () => {
    const { app, reports } = openApp();
    expect((await send(app, dropped)).status).toBe(200);
    expect(reports).toEqual([dropped]);
    const back = openApp({ outcome: { kind: "given-back", reason: "full" } });
    expect((await send(back.app, dropped)).status).toBe(503);
    expect(back.reports).toEqual([]);
  });

  test.each([
    ["dropped.incarnation", { ...dropped, incarnation: "a b" }],
    ["dropped.since", { ...dropped, since: -1 }],
    ["dropped.totals[0].total", { ...dropped, totals: [{ reason: "ring-full", total: -1 }] }],
    ["dropped.totals[0].reason", { ...dropped, totals: [{ reason: "Ring full", total: 1 }] }],
  ])("is refused with its batch for %s", async (field, report) => {
    const { status, body } = await send(openApp().app, report);
    expect([status, body.errors[0].field]).toEqual([400, field]);
  });
});

describe("a last report of drops", () => {
  const dropped = { incarnation: "one", since: 1, totals: [{ reason: "stopped", total: 2 }] };

  test("is stored before it is answered, and refused where it is none", async () => {
    const { app, reports } = openApp();
    const send = (body: object) => request(app).post("/v1/drops").send(body);
    expect((await send({ sender: "test", dropped })).status).toBe(200);
    expect(reports).toEqual([dropped]);
    expect((await send({ sender: "test", dropped, clicks: [] })).body.errors[0].field).toBe("clicks");
    expect((await send({ sender: "test" })).status).toBe(400);
    expect(reports).toHaveLength(1);
  });

  test("that cannot be stored is answered 503: its sender may try again", async () => {
    const { app, logger } = openApp({ report: () => Promise.reject(new Error("away")) });
    const answer = await request(app).post("/v1/drops").send({ sender: "test", dropped });
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    expect(logger.entries).toMatchObject([{ level: "warn", fields: { sender: "test" } }]);
  });
});

describe("everything else", () => {
  test.each([
    ["GET", "/v1/clicks", "POST"],
    ["OPTIONS", "/v1/clicks", "POST"],
    ["GET", "/v1/drops", "POST"],
    ["DELETE", "/v1/links/abc/stats", "GET, HEAD"],
    ["POST", "/v1/links/abc/stats", "GET, HEAD"],
  ] as const)("%s %s is 405 and names the methods there are", async (method, path, allow) => {
    const { app } = openApp();
    const answer = await request(app)[method.toLowerCase() as "get"](path);
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    expect(answer.body).toMatchObject({ code: "method-not-allowed" });
  });

  test.each(["/", "/v1/clicks/", "/V1/CLICKS", "/v1/links/abc", "/v1/links/abc/stats/"])("%s is 404", async (path) => {
    const answer = await request(openApp().app).get(path);
    expect([answer.status, answer.body.code]).toEqual([404, "not-found"]);
  });

  test("HEAD of statistics has no body", async () => {
    const answer = await request(openApp().app).head("/v1/links/abc/stats");
    expect([answer.status, answer.text]).toEqual([200, undefined]);
  });
});

describe("a request that could be meant for somebody else", () => {
  test.each([
    ["with two Hosts", "GET /v1/clicks HTTP/1.1\r\nHost: x\r\nHost: y\r\n"],
    ["without a Host", "GET /v1/clicks HTTP/1.1\r\n"],
    ["with a Host that is none", "GET /v1/clicks HTTP/1.1\r\nHost: x/y@z\r\n"],
    ["for a proxy", "GET http://x/v1/clicks HTTP/1.1\r\nHost: x\r\n"],
    ["about the whole server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n"],
    ["to be a tunnel", "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n"],
    ["of HTTP/2.0", "GET /v1/clicks HTTP/2.0\r\nHost: x\r\n"],
    ["with an unknown coding", "POST /v1/clicks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n"],
  ])("is refused: %s", async (_what, head) => {
    const { app, offered } = openApp();
    const server = await listen(app, { port: 0, host: "127.0.0.1", maxConnections: 5, requireHost: false });
    const socket = connect(server.port, "127.0.0.1", () => socket.write(`${head}Connection: close\r\n\r\n`));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += String(chunk);
    });
    await new Promise((resolve) => socket.once("close", resolve));
    await server.close(0);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(offered).toEqual([]);
  });
});
