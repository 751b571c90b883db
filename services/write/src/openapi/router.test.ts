import { describe, expect, test } from "@jest/globals";
import { createLogger } from "@linkfence/service-shell";
import { type Express, Router } from "express";
import { type AppDeps, createApp } from "../app.ts";
import { createCounts } from "../counts.ts";
import { describedRoutes } from "../http/api-routes.ts";
import { describeApi } from "./document.ts";
import { toOpenApiPath } from "./operations.ts";

type Layer = { route?: { path: unknown; methods: Record<string, boolean>; stack: { method?: string }[] } };

/** What a real app routes: every method and path, as OpenAPI writes them, without its answer to all other methods. */
function routedBy(app: Express): string[] {
  const { stack } = app.router as unknown as { stack: Layer[] };
  return stack.flatMap(({ route }) => {
    if (!route) return [];
    const methods = new Set(route.stack.flatMap(({ method }) => (method === undefined ? [] : [method])));
    return [...methods].map((method) => `${method} ${toOpenApiPath(String(route.path))}`);
  });
}

function documented(): string[] {
  const { paths } = describeApi(describedRoutes());
  return Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
}

/** Nothing of its parts is used before a request comes. */
function makeApp(): Express {
  const parts = {
    counts: createCounts(),
    logger: createLogger("write", "error"),
    publicBaseUrl: "https://sho.example",
  };
  return createApp({
    ...parts,
    keys: {},
    keyUsage: {},
    limits: {},
    trustedProxies: "",
    privateHosts: "allow",
    now: Date.now,
  } as unknown as AppDeps);
}

describe("the OpenAPI document and the router", () => {
  test("have the same methods of the same paths", () => {
    const routed = routedBy(makeApp());
    expect(routed.length).toBeGreaterThan(10);
    expect(routed.sort()).toEqual(documented().sort());
  });

  test("differ as soon as something is routed beside the table", () => {
    const app = makeApp();
    app.put("/v1/links/:code", () => {});
    expect(routedBy(app)).toContain("put /v1/links/{code}");
    expect(documented()).not.toContain("put /v1/links/{code}");
  });

  test("know no router within the router, whose routes would not be seen here", () => {
    const nested = (app: Express) => {
      const { stack } = app.router as unknown as { stack: { handle: object }[] };
      return stack.filter(({ handle }) => "stack" in handle || "router" in handle).length;
    };
    const app = makeApp();
    expect(nested(app)).toBe(0);
    app.use("/hidden", Router());
    expect(nested(app)).toBe(1);
  });
});
