// What the server itself refuses of connections and requests, and that it counts it.
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { Problem } from "@linkfence/contracts";
import express from "express";
import { registerServerMetrics } from "./http-metrics.ts";
import { type HttpServerOptions, listen, type RunningServer } from "./http-server.ts";
import { allowLongUpload } from "./long-upload.ts";
import { createMetrics } from "./metrics.ts";
import { createErrorHandler } from "./problem-response.ts";

let running: RunningServer | undefined;
afterEach(() => running?.close(0));

type Handler = Parameters<typeof listen>[0];
async function start(handler: Handler, over: Partial<HttpServerOptions> = {}) {
  running = await listen(handler, { port: 0, host: "127.0.0.1", maxConnections: 10, ...over });
  return running;
}

/**
 * Sends a text at once and then a letter every 50 ms, whether or not the other side has closed its half; resolves with all
 * that came back when the connection is gone.
 */
function trickle(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    let drip: NodeJS.Timeout | undefined;
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => {
      socket.write(text);
      drip = setInterval(() => socket.write("a"), 50);
    });
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

describe("a header block that comes letter by letter", () => {
  test("is cut off with 408, though its client goes on sending, and others are answered meanwhile", async () => {
    const { port, stats } = await start((_request, response) => response.end("ok"), { requestTimeoutMs: 300 });
    const slow = trickle(port, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("ok");
    expect(await slow).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\nConnection: close\r\nCache-Control: no-store/);
    expect(stats().unreadable.slow).toBe(1);
  });
});

describe("what takes long for a good reason", () => {
  test("as an upload whose handler watches over it is not cut off, and not counted as slow", async () => {
    let told = () => {};
    const late = new Promise<void>((resolve) => {
      told = resolve;
    });
    const { port, server, stats } = await start(
      (request, response) => {
        allowLongUpload(request);
        request.resume().on("end", () => response.end("whole"));
      },
      { requestTimeoutMs: 300 },
    );
    server.on("clientError", told);
    const socket = connect(port, "127.0.0.1", () =>
      socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\na"),
    );
    const answered = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
    await late;
    socket.write("b");
    expect(await answered).toMatch(/^HTTP\/1\.1 200 [\s\S]*whole$/);
    expect(stats().unreadable.slow).toBe(0);
  });

  test("as an answer without an end goes on", async () => {
    let other = () => {};
    const { port, server } = await start(
      (_request, response) => {
        response.write("first ");
        other = () => response.end("second");
      },
      { requestTimeoutMs: 300 },
    );
    const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text());
    // A second connection, which is cut off, shows that the time of the first is over.
    await new Promise<void>((resolve) => {
      server.once("clientError", () => resolve());
      connect(port, "127.0.0.1")
        .on("error", () => {})
        .resume();
    });
    other();
    expect(await answer).toBe("first second");
  });
});

describe("nonsense within a body", () => {
  test.each([
    ["a chunk without a length", "ZZ\r\n", "400 Bad Request"],
    ["a long extension of a chunk", `5;${"a".repeat(20_000)}\r\n`, "400 Bad Request"],
    ["a long trailer", `1\r\na\r\n0\r\nX: ${"a".repeat(9000)}\r\n\r\n`, "431 Request Header Fields Too Large"],
  ])("(%s) is the end of its request, and its handler hears of it", async (_what, text, status) => {
    let ended = () => {};
    const handled = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const { port, stats } = await start((request) => void request.resume().once("close", ended));
    const answer = await trickle(port, `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${text}`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status}\r\n[^]*Connection: close`));
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    await handled;
    expect(stats().unreadable).toMatchObject(status.startsWith("400") ? { malformed: 1 } : { oversized: 1 });
  });

  test("is not answered a second time where the call was refused without its body", async () => {
    const { port } = await start((_request, response) => void response.writeHead(401).end("no"), {
      requestTimeoutMs: 300,
    });
    for (const rest of ["ZZ\r\n", "1\r\na\r\n"]) {
      const answer = await trickle(port, `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${rest}`);
      expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 401"]);
    }
  });
});

test("who asks before it sends a body is told to go on when the body is read, and not where the call is refused", async () => {
  const { port } = await start((request, response) => {
    if (request.url === "/refused") response.writeHead(401).end();
    else request.resume().on("end", () => response.end("whole"));
  });
  const ask = (path: string) =>
    new Promise<string>((resolve) => {
      let answer = "";
      const socket = connect(port, "127.0.0.1", () =>
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n`,
        ),
      );
      socket.on("data", (chunk) => {
        if (String(chunk).startsWith("HTTP/1.1 100 ")) socket.write("body");
        answer += String(chunk);
      });
      socket.once("close", () => resolve(answer));
    });
  expect((await ask("/refused")).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 401"]);
  expect((await ask("/")).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 100", "HTTP/1.1 200"]);
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
