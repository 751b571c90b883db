// Connections with plain requests from their first word to their end.
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { letConnectionsEnd } from "../workers/linger.ts";
import { createHeldReads, type PlainWorld, type PlainWorldOptions, startPlainWorld } from "./plain-world.fixture.ts";

const TARGET = "https://held.example/";
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
/** Above all that a test takes; one that comes to it has failed. */
const LONG_MS = 50_000;

let world: PlainWorld | undefined;
afterEach(() => world?.close());

async function start(options?: PlainWorldOptions) {
  world = await startPlainWorld(options);
  return world;
}

const statuses = (answer: string) => [...answer.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);

describe("a connection", () => {
  test("is answered on for as long as its requests are plain, and is Node's from the first other one on", async () => {
    const { open, plain } = await start();
    const connection = await open();
    for (const path of ["/abc", "/gone", "/unknown"]) await connection.send(get(path));
    await connection.answers(3);
    expect(plain.stats()).toEqual({ open: 1, passedOn: 0 });
    for (const path of ["/abc+", "/abc"]) await connection.send(get(path));
    expect(statuses(await connection.answers(5))).toEqual(["302", "410", "404", "200", "302"]);
    expect(plain.stats()).toEqual({ open: 0, passedOn: 1 });
    connection.socket.destroy();
  });

  test.each([
    ["says nothing", ""],
    ["says half of a request", "GET /abc HTTP/1.1\r\nHo"],
  ])("that %s at first is Node's, which ends it with 408", async (_what, words) => {
    const { open, plain } = await start({ requestTimeoutMs: 100 });
    const connection = await open();
    await connection.send(words);
    expect(statuses(await connection.all())).toEqual(["408"]);
    expect(plain.stats()).toEqual({ open: 0, passedOn: 1 });
  });

  test("that was answered and is idle ends after the time that its client was told", async () => {
    const { open } = await start({ keepAliveMs: 1000 });
    const connection = await open();
    await connection.send(get("/abc"));
    expect(await connection.all()).toContain("Keep-Alive: timeout=1\r\n");
  });

  test("whose client closes its half ends", async () => {
    const { open, plain } = await start();
    const connection = await open();
    await connection.send(get("/abc"));
    connection.socket.end();
    expect(statuses(await connection.all())).toEqual(["302"]);
    await until(() => plain.stats().open === 0);
  });

  test("that is reset is forgotten, and nothing else happens", async () => {
    const { open, plain } = await start();
    const connection = await open();
    await connection.send(get("/abc"));
    await connection.answers(1);
    connection.socket.resetAndDestroy();
    await until(() => plain.stats().open === 0);
  });

  test("whose client reads nothing is read no more, and all is answered once it does", async () => {
    const { open, server, plain } = await start();
    const connection = await open();
    connection.socket.pause();
    let sent = 0;
    const stalled = () => connection.other.writableLength > 0;
    for (; !stalled(); sent += 1) await connection.send(get("/long"));
    expect(connection.other.isPaused()).toBe(true);
    // What is kept for it is the part of one answer that the system would not take.
    expect(connection.other.writableLength).toBeLessThan(10_000);
    expect(plain.isPending(connection.other)).toBe(true);
    connection.socket.resume();
    expect(statuses(await connection.answers(sent))).toEqual(Array(sent).fill("302"));
    await until(() => !plain.isPending(connection.other));
    await connection.send(get("/abc"));
    await connection.answers(sent + 1);
    connection.socket.destroy();
    await server.close(LONG_MS);
  });
});

describe("while the link of a request is read", () => {
  test.each([
    ["by the front", {}],
    ["by Node's server", { read: null }],
  ])("a visitor who leaves is no click, where the request was read %s; one who stays is", async (_by, options) => {
    const reads = createHeldReads();
    const { open, takeClicks, counts } = await start({ ...options, readLink: reads.readLink });
    const [left, half, stays] = [await open(), await open(), await open()];
    for (const connection of [left, half, stays]) await connection.send(get("/held"));
    await reads.underWay(1);
    left.socket.destroy();
    half.socket.end();
    await until(() => left.other.destroyed && !half.other.writable);
    reads.answer(TARGET);
    expect(await stays.answers(1)).toContain(`Location: ${TARGET}\r\n`);
    expect(takeClicks().map(({ code }) => code)).toEqual(["held"]);
    expect(counts().redirect).toBe(1);
    expect(await half.all()).toBe("");
    stays.socket.destroy();
  });

  test("what comes behind it waits, and is answered behind it", async () => {
    const reads = createHeldReads();
    const { open, plain } = await start({ readLink: reads.readLink });
    const connection = await open();
    await connection.send(get("/held"));
    await reads.underWay(1);
    for (const path of ["/robots.txt", "/held"]) connection.socket.write(get(path));
    await until(() => connection.other.isPaused());
    reads.answer(TARGET);
    expect(statuses(await connection.answers(3))).toEqual(["302", "200", "302"]);
    expect(plain.stats()).toEqual({ open: 0, passedOn: 1 });
    connection.socket.destroy();
  });
});

describe("at a stop", () => {
  test("idle connections end at once, and a request under way is answered before its connection ends", async () => {
    const reads = createHeldReads();
    const { open, close } = await start({ readLink: reads.readLink });
    const [idle, busy] = [await open(), await open()];
    await idle.send(get("/held"));
    await reads.underWay(1);
    reads.answer("https://held.example/?1");
    await idle.answers(1);
    await busy.send(get("/other"));
    await reads.underWay(1);
    const closed = close(LONG_MS);
    await idle.all();
    expect(busy.answer()).toBe("");
    reads.answer(TARGET);
    expect(await busy.all()).toContain(`Location: ${TARGET}\r\n`);
    await closed;
  });

  test("a request that is not answered by the deadline ends with its connection, and is no click", async () => {
    const reads = createHeldReads();
    const { open, close, takeClicks } = await start({ readLink: reads.readLink });
    const busy = await open();
    await busy.send(get("/held"));
    await reads.underWay(1);
    await close(1);
    expect(await busy.all()).toBe("");
    reads.answer(TARGET);
    await new Promise((resolve) => setImmediate(resolve));
    expect(takeClicks()).toEqual([]);
  });

  test("for a successor, each connection hears of it with its next answer", async () => {
    const reads = createHeldReads();
    const { open, server, plain } = await start({ readLink: reads.readLink });
    const [idle, busy] = [await open(), await open()];
    await idle.send(get("/held"));
    await reads.underWay(1);
    reads.answer(TARGET);
    await idle.answers(1);
    await busy.send(get("/other"));
    await reads.underWay(1);
    const ended = letConnectionsEnd(server, plain);
    await idle.send(get("/held"));
    reads.answer(TARGET);
    await busy.answers(1);
    await busy.send(get("/held"));
    for (const connection of [idle, busy]) {
      const answers = (await connection.all()).split(/(?=HTTP\/1\.1 )/);
      expect(answers.map((answer) => /^Connection: (\S+)/m.exec(answer)?.[1])).toEqual(["keep-alive", "close"]);
    }
    await ended;
  });
});
