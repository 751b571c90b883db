import { connect } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { listen, type RunningServer } from "./http-server.ts";

let running: RunningServer | undefined;
afterEach(() => running?.close(0));

const start = async (handler: Parameters<typeof listen>[0]) => {
  running = await listen(handler, { port: 0, host: "127.0.0.1", maxConnections: 10 });
  return running;
};

/** Sends bytes as they are, and returns everything that comes back until the end. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.setEncoding("latin1").on("data", (chunk) => {
      answer += chunk;
    });
    socket.once("error", reject).once("close", () => resolve(answer));
  });
}

describe("what cannot be read as a request", () => {
  test.each([
    ["garbage", "\x01\x02\r\n\r\n", "400"],
    ["a header block that is too large", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(9000)}\r\n\r\n`, "431"],
    ["two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"],
    [
      "a length beside chunks",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "400",
    ],
  ])("(%s) is answered briefly, kept by no cache, and never reaches the handler", async (_what, text, status) => {
    let reached = 0;
    const { port } = await start((_request, response) => {
      reached += 1;
      response.end();
    });
    const answer = await exchange(port, text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain("Cache-Control: no-store");
    expect(reached).toBe(0);
  });
});

describe("a stop", () => {
  test("lets the request under way finish, closes the idle connection, and accepts no more", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let arrived = () => {};
    const atWork = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { port, close } = await start(async (request, response) => {
      if (request.url === "/slow") {
        arrived();
        await held;
      }
      response.end("done");
    });
    const idle = connect(port, "127.0.0.1");
    const answered = new Promise((resolve) => idle.once("data", resolve));
    idle.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await answered;
    const idleClosed = new Promise((resolve) => idle.once("close", resolve));
    const slow = exchange(port, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    await atWork;
    const closed = close(5000);
    await idleClosed;
    await expect(exchange(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    release();
    expect(await slow).toContain("done");
    await closed;
  });

  test("ends what does not end by itself, at its deadline", async () => {
    let arrived = () => {};
    const atWork = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { port, close } = await start(() => arrived());
    const hanging = exchange(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").catch(() => "");
    await atWork;
    await close(50);
    expect(await hanging).toBe("");
  });

  test.each([
    ["has sent nothing", ""],
    ["has sent a part of a request", "GET / HTTP/1.1\r\nHo"],
    ["has sent a part of its second request", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"],
  ])("does not wait for a connection that %s", async (_what, text) => {
    const { port, close } = await start((_request, response) => response.end("done"));
    const socket = connect(port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(text);
    const ended = new Promise((resolve) => socket.resume().once("close", resolve));
    const startedAt = performance.now();
    await close(10_000);
    await ended;
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe("garbage behind a request", () => {
  test("does not take the place of its answer", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { port, server } = await start(async (_request, response) => {
      await held;
      response.end("done");
    });
    server.once("clientError", () => setImmediate(release));
    const answer = await exchange(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n\x01garbage\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1.1 200 OK/);
    expect(answer).toMatch(/done$/);
    expect(answer.match(/HTTP\/1.1/g)).toHaveLength(1);
  });
});

describe("header fields", () => {
  test("are all shown, however many small ones there are", async () => {
    let seen: string[] = [];
    const { port } = await start((request, response) => {
      seen = request.rawHeaders;
      response.end();
    });
    const many = Array.from({ length: 1200 }, () => "a:\r\n").join("");
    await exchange(port, `GET / HTTP/1.1\r\nHost: x\r\n${many}X-Last: y\r\nConnection: close\r\n\r\n`);
    expect(seen.at(-4)).toBe("X-Last");
  });
});
