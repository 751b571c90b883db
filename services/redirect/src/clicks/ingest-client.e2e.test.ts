import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { encodeFrames } from "../spool/frame.ts";
import { createIngestClient } from "./ingest-client.ts";

const clicks: Click[] = [1, 2].map((n) => ({
  id: `018f0000-0000-7000-8000-00000000000${n}`,
  code: "abc",
  version: 1,
  at: 1_700_000_000_000,
  referrerHost: null,
  userAgent: null,
}));
const batch = { clicks: 2, frames: [encodeFrames(clicks.map((click) => JSON.stringify(click)))] };
const dropped = { incarnation: "redirect-1", since: 1_700_000_000_000, totals: [{ reason: "ring-full", total: 3 }] };
const account = (over: object = {}) => JSON.stringify({ received: 2, inserted: 1, duplicate: 1, refused: 0, ...over });

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }
});

/** Sends the two clicks to a server that behaves as told. */
async function sendTo(listener: RequestListener, signal = new AbortController().signal, secret?: string) {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}`;
  return createIngestClient({ baseUrl, sender: "redirect-1", secret, dropped: () => dropped })(batch, signal);
}

const answer =
  (status: number, body: string): RequestListener =>
  (_request, response) =>
    response.writeHead(status, { "Content-Type": "application/json" }).end(body);

describe("a batch", () => {
  test("is posted as JSON to /v1/clicks with the sender's name, and is stored when its account is right", async () => {
    const got: unknown[] = [];
    const result = await sendTo(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      got.push(
        request.method,
        request.url,
        request.headers["content-type"],
        JSON.parse(Buffer.concat(chunks).toString()),
      );
      response.end(account());
    });
    expect(got).toEqual(["POST", "/v1/clicks", "application/json", { sender: "redirect-1", dropped, clicks }]);
    expect(result).toEqual({ kind: "stored", result: { received: 2, inserted: 1, duplicate: 1, refused: 0 } });
  });

  test("shows the secret where there is one", async () => {
    const shown: (string | undefined)[] = [];
    const listener: RequestListener = (request, response) => {
      shown.push(request.headers.authorization);
      response.end(account());
    };
    await sendTo(listener);
    await sendTo(listener, undefined, "a-secret");
    expect(shown).toEqual([undefined, "Bearer a-secret"]);
  });

  test.each([
    ["no JSON", "<html>"],
    ["nothing", ""],
    ["null", "null"],
    ["another number of clicks", account({ received: 3, inserted: 2 })],
    ["a sum that does not add up", account({ inserted: 2 })],
    ["a field that is missing", '{"received":2,"inserted":2}'],
    ["a field that nobody knows", account({ extra: 1 })],
    ["numbers as texts", account({ inserted: "1" })],
    ["more than an account can be", " ".repeat(70_000) + account()],
  ])("is sent again when the answer is %s", async (_what, body) => {
    expect(await sendTo(answer(200, body))).toMatchObject({ kind: "failed" });
  });

  test.each([201, 204, 401, 403, 404, 405, 408, 409, 429, 500, 502, 503])(
    "is sent again after a %d, which may pass",
    async (status) => {
      expect(await sendTo(answer(status, ""))).toEqual({ kind: "failed", reason: `the ingest answered ${status}` });
    },
  );

  test("is divided after a 413: a proxy in front of the ingest may let only smaller ones pass", async () => {
    expect(await sendTo(answer(413, ""))).toEqual({ kind: "too-large", reason: "the ingest answered 413" });
  });

  test.each([400, 415, 422])("is given up after a %d, which is about the batch itself", async (status) => {
    expect(await sendTo(answer(status, ""))).toEqual({ kind: "refused", reason: `the ingest answered ${status}` });
  });

  test("is not carried to where a redirect points", async () => {
    const paths: (string | undefined)[] = [];
    const result = await sendTo((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { Location: "/elsewhere" }).end();
    });
    expect(result.kind).toBe("failed");
    expect(paths).toEqual(["/v1/clicks"]);
  });

  test("is sent again when the connection ends before the answer, and when its answer never ends", async () => {
    expect(await sendTo((_request, response) => response.destroy())).toMatchObject({ kind: "failed" });
    const endless =
      (chunk: string): RequestListener =>
      (_request, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(chunk));
          response.once("drain", more);
        };
        more();
      };
    expect(await sendTo(endless(" ".repeat(10_000)))).toEqual({
      kind: "failed",
      reason: "the answer has more than 65536 bytes",
    });
  });

  test("is let go at once when the sender stops", async () => {
    const halt = new AbortController();
    const result = await sendTo(() => halt.abort(), halt.signal);
    expect(result.kind).toBe("failed");
  });
});
