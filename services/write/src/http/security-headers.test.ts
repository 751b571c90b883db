import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import express from "express";
import type { Call } from "./call.ts";
import { addRoutes } from "./routes.ts";
import { setSecurityHeaders } from "./security-headers.ts";

test("a call that serves a page puts its own content security policy in the place of the one that allows nothing", async () => {
  const open = (headers?: Record<string, string>) =>
    ({
      scope: null,
      handle: async () => ({ status: 200, text: "<p>", type: "html", ...(headers ? { headers } : {}) }),
    }) as unknown as Call;
  const app = express().use(setSecurityHeaders);
  const own = "default-src 'none'; script-src 'self'";
  const routes = { "/docs": { get: open({ "Content-Security-Policy": own }) }, "/data": { get: open() } };
  addRoutes(app, routes, {
    admit: () => Promise.reject(new Error("asked for a key")),
    audit: (_call, _exchange, run) => run(),
  });
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const policyOf = async (path: string) =>
    (await fetch(`http://127.0.0.1:${port}${path}`)).headers.get("content-security-policy");
  expect(await policyOf("/docs")).toBe(own);
  expect(await policyOf("/data")).toBe("default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'");
  server.closeAllConnections();
  server.close();
});
