// Revocation and batches through the admin API.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { ProblemBody } from "@linkfence/contracts";
import { until } from "@linkfence/testkit";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

describe("revocation", () => {
  const changes = async (code: string) =>
    (await world.database.sql`SELECT seq::int, version::int, changed_by FROM link_change WHERE code = ${code}`).map(
      (row) => ({ ...row }),
    );

  test("is committed with its number; again, it is told so, with the same number and no second change", async () => {
    await world.create({ target: "https://example.com/", alias: "twice" });
    const first = await world.api("DELETE", "/v1/links/twice?wait=committed");
    const effective = { confirmed: false, by: null, afterMs: null, instances: null };
    expect(first).toEqual({
      status: 200,
      json: { code: "twice", outcome: "revoked", version: 2, seq: expect.any(Number), effective },
    });
    const second = await world.api("DELETE", "/v1/links/twice?wait=committed");
    expect(second).toEqual({ status: 200, json: { ...first.json, outcome: "already-revoked", version: -1 } });
    expect(await changes("twice")).toEqual([
      { seq: first.json.seq, version: 2, changed_by: world.adminKey.split("_")[1] },
    ]);
    await world.database.sql`DELETE FROM link_change WHERE code = 'twice'`;
    expect((await world.api("DELETE", "/v1/links/twice?wait=committed")).json).toEqual(second.json);
    expect((await world.api("GET", "/v1/links/twice")).json).toMatchObject({
      state: "REVOKED",
      version: 2,
      revokedBy: world.adminKey.split("_")[1],
    });
  });

  test("for which no number is left is refused whole: the link lives on", async () => {
    await world.create({ target: "https://example.com/", alias: "no-number" });
    const sequence = async (seq: number) => world.database.sql`SELECT setval('link_change_seq_seq', ${seq})`;
    const [row] = await world.database.sql`SELECT nextval('link_change_seq_seq')::int AS seq`;
    await sequence(Number.MAX_SAFE_INTEGER);
    const refused = await world.api("DELETE", "/v1/links/no-number");
    await sequence(row?.seq);
    expect([refused.status, refused.json.code]).toEqual([500, "internal"]);
    expect((await world.api("GET", "/v1/links/no-number")).json).toMatchObject({ state: "ACTIVE", version: 1 });
    expect((await world.api("DELETE", "/v1/links/no-number")).json).toMatchObject({ outcome: "revoked" });
  });

  test("by twenty at once is one change", async () => {
    await world.create({ target: "https://example.com/", alias: "by-twenty" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.api("DELETE", "/v1/links/by-twenty")));
    expect(answers.filter(({ json }) => json.outcome === "revoked")).toHaveLength(1);
    expect(await changes("by-twenty")).toHaveLength(1);
  });

  test("of a code does not make it free again", async () => {
    await world.create({ target: "https://example.com/", alias: "used-once" });
    await world.api("DELETE", "/v1/links/used-once");
    const { status, json } = await world.create({ target: "https://other.example/", alias: "used-once" });
    expect([status, json.code]).toEqual([409, "alias-taken"]);
    expect(await world.rowsOf("used-once")).toEqual(["https://example.com/"]);
  });
});

describe("a batch", () => {
  type Item = {
    status: number;
    link?: { code: string; target: string };
    problem?: { code: string; errors?: { field: string }[] };
  };

  test("judges each item on its own and answers in order; of two equal aliases the first wins", async () => {
    const links = [
      { target: "https://example.com/1" },
      { target: "javascript:alert(1)" },
      { target: "https://example.com/2", alias: "in-batch" },
      { target: "https://example.com/3", alias: "in-batch" },
      { nonsense: true },
      "text",
      { target: "https://example.com/4" },
    ];
    const { status, json } = await world.api<{ results: Item[] }>("POST", "/v1/links:batch", { links });
    expect(status).toBe(200);
    expect(json.results.map((item) => item.link?.target ?? item.problem?.code)).toEqual([
      "https://example.com/1",
      "invalid-target",
      "https://example.com/2",
      "alias-taken",
      "invalid-request",
      "invalid-request",
      "https://example.com/4",
    ]);
    expect(json.results[1]?.problem?.errors?.[0]?.field).toBe("links[1].target");
    expect(await world.rowsOf("in-batch")).toEqual(["https://example.com/2"]);
  });

  test("of two with the same aliases in opposite order decides each alias once", async () => {
    const aliases = Array.from({ length: 50 }, (_, n) => `crossed-${n}`);
    const batch = (order: string[], target: string) =>
      world.api<{ results: Item[] }>("POST", "/v1/links:batch", { links: order.map((alias) => ({ target, alias })) });
    const [one, two] = await Promise.all([
      batch(aliases, "https://one.example/"),
      batch([...aliases].reverse(), "https://two.example/"),
    ]);
    const created = [...one.json.results, ...two.json.results].filter(({ status }) => status === 201);
    expect(created).toHaveLength(50);
    for (const { link } of created) expect(await world.rowsOf(link?.code ?? "")).toEqual([link?.target]);
  });

  test.each([[{ links: [] }], [{ links: Array(1001).fill({}) }], [{}], [{ links: {} }], [{ links: [], more: 1 }]])(
    "is refused whole when it is no batch",
    async (body) => {
      expect((await world.api("POST", "/v1/links:batch", body)).status).toBe(400);
    },
  );

  test("of a thousand is revoked in one transaction, with one notification, each answered in its place", async () => {
    const { json } = await world.api<{ results: Item[] }>("POST", "/v1/links:batch", {
      links: Array(998).fill({ target: "https://example.com/" }),
    });
    const codes = json.results.map(({ link }) => link?.code ?? "");
    const heard: string[] = [];
    const { unlisten } = await world.database.sql.listen("link_change", (payload) => heard.push(payload));
    const revoked = await world.api<{ results: Body[] }>("POST", "/v1/links:revoke", {
      codes: ["no-such-link", ...codes, "a?b"],
    });
    await world.database.sql`SELECT pg_notify('link_change', 'last')`;
    await until(() => heard.at(-1) === "last");
    await unlisten();
    expect(heard).toHaveLength(2);
    expect(revoked.json.results.map(({ status }) => status)).toEqual([404, ...Array(998).fill(200), 404]);
    expect(revoked.json.results[1]).toEqual({
      status: 200,
      code: codes[0],
      outcome: "revoked",
      version: 2,
      seq: expect.any(Number),
    });
    expect((revoked.json.results[999] as { problem?: ProblemBody }).problem?.errors).toEqual([
      { field: "codes[999]", rule: "code", detail: expect.stringContaining("3 to 32 letters") },
    ]);
    const [row] = await world.database
      .sql`SELECT count(DISTINCT xmin::text)::int AS transactions FROM link_change WHERE code = ANY(${codes})`;
    expect(row?.transactions).toBe(1);
  });
});

test("statistics that cannot be had are a 503 of that route alone", async () => {
  await world.create({ target: "https://example.com/", alias: "unmeasured" });
  const { status, json } = await world.api("GET", "/v1/links/unmeasured/stats");
  expect([status, json.code]).toEqual([503, "statistics-unavailable"]);
  expect((await world.api("GET", "/v1/links/unmeasured")).status).toBe(200);
});
