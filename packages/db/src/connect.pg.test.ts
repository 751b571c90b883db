import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { createDatabase } from "./connect.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase("empty");
});
afterAll(() => database.drop());

const open = (url = database.url) => createDatabase({ url, applicationName: "test", max: 1, queryTimeoutMs: 5000 });

describe("arrays", () => {
  test("go to the database and come back, empty ones, missing values and large numbers included", async () => {
    const db = open();
    const texts = ["a,b", 'say "hi"', "\\", "NULL", "", " é\u{1f600}"];
    const ids = ["7f0c1f1e-2f4b-4c3d-8a6b-1c2d3e4f5a6b"];
    const numbers = [0, -1, Number.MAX_SAFE_INTEGER];
    const [row] = await db.run(
      (sql) => sql`
        SELECT ${texts}::text[] AS texts, ${[]}::text[] AS none, ${ids}::uuid[] AS ids, ${numbers}::bigint[] AS numbers,
               ${[1, 2]}::int[] AS ints, ARRAY[NULL, 'x'] AS gaps, array_agg(n) AS aggregated FROM generate_series(1, 3) AS n`,
    );
    expect(row).toEqual({
      texts,
      none: [],
      ids,
      numbers,
      ints: [1, 2],
      gaps: [null, "x"],
      aggregated: [1, 2, 3],
    });
    await db.close();
  });

  test("of numbers beyond 2^53 are refused rather than rounded", async () => {
    const db = open();
    await expect(db.run((sql) => sql`SELECT ARRAY[9007199254740993] AS numbers`)).rejects.toThrow(RangeError);
    expect(await db.run((sql) => sql`SELECT 1`)).toHaveLength(1);
    await db.close();
  });
});

describe("a connection", () => {
  test("asks nothing but what its callers ask: the failure of a question of its own would have nobody to go to", async () => {
    const target = Number(new URL(database.url).port);
    let sent = "";
    const tap = createServer((client) => {
      const server = connect(target, "127.0.0.1");
      client.on("data", (chunk) => {
        sent += chunk.toString("latin1");
      });
      client.pipe(server).pipe(client);
    });
    await new Promise<void>((resolve) => tap.listen(0, "127.0.0.1", resolve));
    const url = new URL(database.url);
    url.port = String((tap.address() as AddressInfo).port);
    const db = open(url.href);
    await db.run((sql) => sql`SELECT ${["x"]}::text[] AS only_question`);
    await db.close();
    expect(sent.match(/select/gi)).toEqual(["SELECT"]);
    await new Promise((resolve) => tap.close(resolve));
  });
});
