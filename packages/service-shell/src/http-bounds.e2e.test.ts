// What the server itself refuses of connections and requests, and that it counts it.
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { Problem } from "@linkfence/contracts";
import express from "express";
import { registerServerMetrics } from "./http-metrics.ts";
import { type HttpServerOptions, listen, type RunningServer } from "./http-server.ts";
import { createMetrics } from "./metrics.ts";
import { createErrorHandler } from "./problem-response.ts";

let running: RunningServer | undefined;
afterEach(() => running?.close(0));

type Handler = Parameters<typeof listen>[0];
async function start(handler: Handler, over: Partial<HttpServerOptions> = {}) {
  running = await listen(handler, { port: 0, host: "127.0.0.1", maxConnections: 10, ...over });
  return running;
}

/** Sends a text at once and then a letter every 50 ms; resolves with all that came back when the connection ends. */
function trickle(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    const drip = setInterval(() => socket.write("a"), 50);
    socket.setEncoding("latin1").on("data", (chunk) => {
      answer += chunk;
    });
    // What is written into a connection that has ended is answered with a reset.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.once("close", () => {
      clearInterval(drip);
      resolve(answer);
    });
  });
}

const SLOW_BODY = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";

describe("a body that comes letter by letter", () => {
  test("is cut off with 408, and its handler hears of it without a word in the log", async () => {
    const logged: string[] = [];
    const write = (message: string) => void logged.push(message);
    let ended = () => {};
    const handled = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const app = express();
    app.post("/", async (request, response) => {
      try {
        for await (const _chunk of request);
        response.end("whole");
      } catch {
        throw new Problem("invalid-request", "ended early");
      } finally {
        ended();
      }
    });
    app.use(createErrorHandler({ error: write, warn: write, info: write, debug: write }, () => undefined));
    const { port, stats } = await start(app, { requestTimeoutMs: 300 });
    expect(await trickle(port, SLOW_BODY)).toMatch(/^HTTP\/1\.1 408 [\s\S]*Cache-Control: no-store/);
    await handled;
    expect(stats().unreadable.slow).toBe(1);
    expect(logged).toEqual([]);
  });

  test("is cut off without an answer where one has begun", async () => {
    const { port } = await start(
      (_request, response) => {
        response.writeHead(200, { "Content-Length": "10" });
        response.write("half ");
      },
      { requestTimeoutMs: 300 },
    );
    const answer = await trickle(port, SLOW_BODY);
    expect(answer).toMatch(/half $/);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("is not cut off by Node alone: whoever hears of the time and does nothing keeps the connection (control)", async () => {
    const { port, server } = await start((request, response) => void request.resume().on("end", () => response.end()), {
      requestTimeoutMs: 300,
    });
    server.removeAllListeners("clientError");
    const told = new Promise<Error>((resolve) => server.once("clientError", resolve));
    const socket = connect(port, "127.0.0.1", () => socket.write(SLOW_BODY));
    expect(await told).toMatchObject({ code: "ERR_HTTP_REQUEST_TIMEOUT" });
    const open = await new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
    socket.destroy();
    expect(open).toBe(1);
  });
});

test("CONNECT is answered with 400: no service is a tunnel", async () => {
  const { port, stats } = await start((_request, response) => response.end("reached"));
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    answer += chunk;
  });
  socket.write("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close/);
  expect(stats().unreadable.connect).toBe(1);
});

test("connections beyond the bound are closed at once and counted, and so is what cannot be read", async () => {
  const { port, stats } = await start((_request, response) => response.end("ok"), { maxConnections: 2 });
  const open = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    await new Promise((resolve) => socket.once("connect", resolve));
    return socket;
  };
  const ask = (socket: Socket, text: string) =>
    new Promise<string>((resolve) => {
      socket.once("data", (chunk) => resolve(chunk.toString("latin1")));
      socket.write(text);
    });
  const kept = [await open(), await open()] as const;
  for (const socket of kept) expect(await ask(socket, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).toContain("200 OK");
  const beyond = await open();
  await new Promise((resolve) => beyond.resume().once("close", resolve));
  expect(stats()).toMatchObject({ open: 2, refused: 1 });
  expect(await ask(kept[0], "\x01\r\n\r\n")).toContain("400 Bad Request");
  expect(await ask(kept[1], `GET /${"a".repeat(9000)} HTTP/1.1\r\nHost: x\r\n\r\n`)).toContain("431 Request Header");
  expect(stats().unreadable).toEqual({ malformed: 1, oversized: 1, slow: 0, connect: 0 });
});

test("what a server counts is on the page of metrics", async () => {
  const { port, stats } = await start((_request, response) => response.end("ok"));
  const metrics = createMetrics();
  registerServerMetrics(metrics, { stats });
  await fetch(`http://127.0.0.1:${port}/`);
  const page = await metrics.render();
  expect(page).toMatch(/^linkfence_http_connections 1$/m);
  expect(page).toMatch(/^linkfence_http_connections_refused_total 0$/m);
  expect(page).toMatch(/^linkfence_http_unreadable_total\{kind="slow"\} 0$/m);
});
