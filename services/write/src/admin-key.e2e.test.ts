// The command that makes the first admin key of an installation.
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createTestDatabase, spawnProcess, type TestDatabase } from "@linkfence/testkit";

let database: TestDatabase;
let directory: string;
let file: string;
beforeEach(async () => {
  database = await createTestDatabase("main");
  directory = await mkdtemp(join(tmpdir(), "linkfence-admin-key-"));
  file = join(directory, "admin-key");
});
afterEach(async () => {
  await rm(directory, { recursive: true });
  await database.drop();
});

async function run(args: string[], env: Record<string, string> = { DATABASE_URL: database.url }) {
  const command = spawnProcess("services/write/dist/admin-key.js", env, args);
  const { code } = await command.exited;
  return { code, output: command.output() };
}
const answerOf = ({ output }: { output: string }) => JSON.parse(output) as Record<string, unknown>;
const keysInDatabase = async () => (await database.sql`SELECT id FROM api_key ORDER BY id`).map(({ id }) => String(id));
const idInFile = async () => (await readFile(file, "utf8")).split("_")[1] ?? "";

describe("the first admin key", () => {
  test("is written for its owner alone, stored as a digest, and named without its secret", async () => {
    const made = await run(["--file", file]);
    expect(made.code).toBe(0);
    expect(answerOf(made)).toEqual({ created: true, id: await idInFile(), file });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const text = (await readFile(file, "utf8")).trim();
    expect(made.output).not.toContain(text.slice(-43));
    const [row] = await database.sql`SELECT owner, scopes, secret_hash, expires_at FROM api_key`;
    expect(row).toMatchObject({ owner: "admin", scopes: ["admin"], expires_at: null });
    expect(String(row?.secret_hash)).not.toContain(text.slice(-43));
  });

  test("is made once: a second run leaves key and file alone, and says so", async () => {
    await run(["--file", file]);
    const before = await readFile(file, "utf8");
    const again = await run(["--file", file]);
    expect([again.code, answerOf(again).created]).toEqual([0, false]);
    expect(await readFile(file, "utf8")).toBe(before);
    expect(await keysInDatabase()).toHaveLength(1);
  });

  test("whose file is gone is not made again by itself: the answer says how", async () => {
    await run(["--file", file]);
    await rm(file);
    const again = await run(["--file", file]);
    expect(again.code).toBe(0);
    expect(answerOf(again)).toMatchObject({ created: false, reason: expect.stringContaining("--new") });
    const other = await run(["--file", file, "--new"]);
    expect(answerOf(other)).toMatchObject({ created: true, id: await idInFile() });
    expect(await keysInDatabase()).toHaveLength(2);
  });

  test("is made when the only one was revoked, and replaces a file whose key no database knows", async () => {
    await run(["--file", file]);
    const first = await idInFile();
    await database.sql`UPDATE api_key SET revoked_at = now()`;
    expect(answerOf(await run(["--file", file])).created).toBe(true);
    expect(await idInFile()).not.toBe(first);
    await database.sql`TRUNCATE api_key`;
    const stale = await idInFile();
    expect(answerOf(await run(["--file", file])).created).toBe(true);
    expect(await idInFile()).not.toBe(stale);
  });

  test("whose file cannot be written is not stored either", async () => {
    await writeFile(file, "something precious");
    const refused = await run(["--file", file]);
    expect(refused.code).toBe(1);
    expect(refused.output).toContain("holds something that is no key");
    expect(await readFile(file, "utf8")).toBe("something precious");
    expect(await keysInDatabase()).toEqual([]);
  });
});

describe("a run that cannot work", () => {
  test.each([[[]], [["--file"]], [["--nonsense"]], [["--file", "x", "more"]]])(
    "with %j shows its usage",
    async (args) => {
      const { code, output } = await run(args);
      expect(code).toBe(2);
      expect(output).toContain("--file <path>");
    },
  );

  test("is none when it is asked for help", async () => {
    const { code, output } = await run(["--help"], {});
    expect(code).toBe(0);
    expect(output).toContain("--file <path>");
  });

  test("without, or with a bad, database URL names the variable and shows no secret", async () => {
    expect(await run(["--file", file], {})).toMatchObject({
      code: 78,
      output: expect.stringContaining("DATABASE_URL"),
    });
    const bad = await run(["--file", file], { DATABASE_URL: "postgres://u:hunter#2@127.0.0.1/db" });
    expect([bad.code, bad.output]).toEqual([78, expect.not.stringContaining("hunter")]);
  });

  test("without a database, or without its schema, says so, exits with 1 and writes no file", async () => {
    const empty = await createTestDatabase("empty");
    for (const url of ["postgres://u:hunter2@127.0.0.1:1/db", empty.url]) {
      const { code, output } = await run(["--file", file], { DATABASE_URL: url });
      expect([code, output]).toEqual([1, expect.stringContaining("cannot make the key")]);
      expect(output).not.toContain("hunter2");
      await expect(stat(file)).rejects.toThrow();
    }
    await empty.drop();
  });
});
