import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { exchange } from "./http-exchange.ts";

let server: Server | undefined;
afterEach(() => new Promise((resolve) => server?.close(resolve)));

/** A server that answers every connection with some bytes, whatever is asked. */
async function answering(bytes: string, end: boolean): Promise<URL> {
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write(bytes);
      if (end) socket.end();
    });
  });
  server = listener;
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/`);
}

const ask = (url: URL, timeoutMs = 20_000) => exchange(url, { signal: AbortSignal.timeout(timeoutMs), maxBytes: 100 });

describe("an exchange", () => {
  test("gives status and text", async () => {
    const url = await answering("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", false);
    expect(await ask(url)).toEqual({ status: 404, text: "none" });
  });

  test.each([
    [
      "an upgrade that nobody asked for",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nx",
    ],
    ["nothing", ""],
    ["garbage", "banana\r\n\r\n"],
    ["less than it announces", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}"],
    ["more than is wanted", `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(101)}`],
  ])("fails at once, before its deadline, when the answer is %s", async (_what, bytes) => {
    await expect(ask(await answering(bytes, true))).rejects.not.toMatchObject({ name: "TimeoutError" });
  });

  test.each([
    ["before the head", ""],
    ["after the head", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"],
  ])("ends at its deadline when the peer falls silent %s", async (_when, bytes) => {
    await expect(ask(await answering(bytes, false), 100)).rejects.toBeDefined();
  });
});
