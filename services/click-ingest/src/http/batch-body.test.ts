import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { createErrorHandler } from "@linkfence/service-shell";
import express from "express";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { createBodyReader } from "./batch-body.ts";

describe("the body reader", () => {
  test("reads 32 bodies at once, refuses the next one unread, and goes on when one has gone", async () => {
    const bodies = createBodyReader();
    const app = express();
    app.post("/", bodies.read, (_request, response) => void response.json({}));
    app.use(createErrorHandler(createQuietLogger(), () => undefined));
    const server = createServer(app);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    const post = async () =>
      (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })).status;
    const reached = async (count: number) => {
      while (bodies.stats().reading !== count) await new Promise(setImmediate);
    };

    const slow: Socket[] = Array.from({ length: 32 }, () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{");
      return socket;
    });
    await reached(32);
    expect(await post()).toBe(503);
    expect(bodies.stats()).toEqual({ reading: 32, turnedAway: 1 });
    slow[0]?.destroy();
    await reached(31);
    expect(await post()).toBe(200);
    for (const socket of slow) socket.destroy();
    await reached(0);
    server.close();
  });
});
