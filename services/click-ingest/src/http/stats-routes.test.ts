import { describe, expect, test } from "@jest/globals";
import { PoolOverloaded } from "@linkfence/db";
import { createErrorHandler } from "@linkfence/service-shell";
import express from "express";
import request from "supertest";
import type { StatsStore } from "../store/stats.ts";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { createStatsRoutes } from "./stats-routes.ts";

const SUMS = { total: 7, bots: 1, prefetches: 0, series: [], dropped: [] };
const STATS: StatsStore = {
  readLink: async (code) => ({ code, ...SUMS, top: null }),
  readOwner: async () => ({ ...SUMS, links: [] }),
  readClicks: async () => [],
};

function openApp({ stats = {} }: { stats?: Partial<StatsStore> } = {}) {
  const logger = createQuietLogger();
  const app = express().disable("etag").set("query parser", "simple");
  app.use(createStatsRoutes({ ...STATS, ...stats }, logger)).use(createErrorHandler(logger, () => undefined));
  return { app, logger };
}

describe("GET /v1/links/{code}/stats, /v1/links/{code}/clicks and /v1/stats", () => {
  const LINK = "/v1/links/abc/stats";
  const CLICKS = "/v1/links/abc/clicks";
  const OWNER = "/v1/stats?owner=ann";

  test("answer with what is known", async () => {
    const { app } = openApp();
    const answer = await request(app).get(LINK);
    expect([answer.status, answer.body]).toEqual([200, { code: "abc", ...SUMS, top: null }]);
    expect((await request(app).get(OWNER)).body).toEqual({ ...SUMS, links: [] });
    expect((await request(app).get(CLICKS)).body).toEqual({ items: [] });
  });

  test("pass on what is asked for", async () => {
    const asked: unknown[] = [];
    const readOwner = async (owner: string, sums: unknown) => {
      asked.push(owner, sums);
      return { ...SUMS, links: null };
    };
    const { app } = openApp({ stats: { readOwner } });
    await request(app).get("/v1/stats?owner=S%C3%B6hne+%26+Co&start=900000&steps=1,2&top=3");
    expect(asked).toEqual(["Söhne & Co", { edges: [1, 2, 4], top: 3, stepped: true }]);
  });

  test.each([
    [`${LINK}?steps=1`, "start: quarter"],
    [`${LINK}?top=x`, "top: range"],
    [`${LINK}?top=1&top=2`, "top: repeated"],
    [`${LINK}?from=1`, "from: unknown"],
    [`${CLICKS}?limit=0`, "limit: range"],
    [`${CLICKS}?before=x`, "before: uuid"],
    ["/v1/stats", "owner: owner"],
    ["/v1/stats?owner=%00", "owner: owner"],
  ])("refuse %s by field and rule: %s", async (path, rule) => {
    const { status, body } = await request(openApp().app).get(path);
    expect([status, `${body.errors[0].field}: ${body.errors[0].rule}`]).toEqual([400, rule]);
  });

  test.each(["ab", "a%20b", "x".repeat(33), "a.b", "%00%00%00"])("answer 404 to %s, which is no code", async (code) => {
    const asked: string[] = [];
    const readLink = async (text: string) => {
      asked.push(text);
      return { code: text, ...SUMS, top: null };
    };
    const answer = await request(openApp({ stats: { readLink } }).app).get(`/v1/links/${code}/stats`);
    expect([answer.status, answer.body.code, asked]).toEqual([404, "not-found", []]);
  });

  const failing = (error: Error) => {
    const fail = () => Promise.reject(error);
    return openApp({ stats: { readLink: fail, readOwner: fail, readClicks: fail } });
  };

  test.each([LINK, OWNER, CLICKS])(
    "answer 503 to %s when it cannot be read, and keep the reason to the log",
    async (path) => {
      const { app, logger } = failing(new Error("hush-hush"));
      const answer = await request(app).get(path);
      expect([answer.status, answer.body.code]).toEqual([503, "statistics-unavailable"]);
      expect(answer.text).not.toContain("hush-hush");
      expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
      expect(logger.entries).toHaveLength(1);
    },
  );

  test("answer 503 `overloaded` when too many wait already", async () => {
    const { app } = failing(new PoolOverloaded(1));
    expect((await request(app).get(LINK)).body).toMatchObject({ status: 503, code: "overloaded" });
  });
});
