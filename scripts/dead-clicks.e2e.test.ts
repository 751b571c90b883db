import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, findRollupFaults, type TestDatabase, watchProcess } from "@linkfence/testkit";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase("stats");
});
afterAll(() => database.drop());

/** Runs the command, and resolves with its exit status, its output, and the JSON in it. */
async function run(args: readonly string[], over: Record<string, string | null> = {}) {
  const { PATH = "", HOME = "" } = process.env;
  const all = { PATH, HOME, STATS_DATABASE_URL: database.url, ...over };
  const env = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)) as Record<string, string>;
  const node = ["scripts/dist/dead-clicks.js", ...args];
  const child = watchProcess(
    spawn(process.execPath, node, {
      cwd: ROOT,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
  const { code } = await child.exited;
  return { code, output: child.output(), lines: child.records() as Record<string, unknown>[] };
}

/** Two that can be stored and one that cannot, with what would move a terminal's cursor. */
async function buryThree(): Promise<void> {
  const at = Date.now();
  const time = at.toString(16).padStart(12, "0");
  const click = (n: number, code: string) => ({
    id: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-00000000000${n}`,
    code,
    version: 1,
    at,
    referrerHost: null,
    userAgent: "\u009b2J",
  });
  const payloads = [click(1, "one"), click(2, "two"), click(3, "?")].map((value) => JSON.stringify(value));
  const three = (text: string) => [text, text, text];
  await database.sql`
    SELECT bury_clicks(${three("id")}, ${three("code")}, ${[null, "22021", null]}, ${three("\u009b2J")}, ${payloads}, 'test',
                       10, 10000)`;
}

test("an operator lists, looks at, stores and throws away what could not be stored", async () => {
  await buryThree();
  const listed = await run(["list"]);
  expect(listed.code).toBe(0);
  expect(listed.lines).toMatchObject([1, 2, 3].map((id) => ({ id, reason: "code", attempts: 1, sender: "test" })));
  const shown = await run(["show", "2", "9"]);
  expect([shown.code, shown.lines.length]).toEqual([1, 1]);
  expect(JSON.parse(String(shown.lines[0]?.payload))).toMatchObject({ code: "two" });
  expect(shown.output).toContain("there is no dead letter 9");
  expect(shown.output).not.toContain("\u009b");
  const replayed = await run(["replay", "--all"]);
  expect([replayed.code, replayed.lines]).toEqual([
    1,
    [
      { id: 1, outcome: "stored" },
      { id: 2, outcome: "stored" },
      { id: 3, outcome: "wrong" },
    ],
  ]);
  expect(await database.sql`SELECT code FROM click ORDER BY code`).toEqual([{ code: "one" }, { code: "two" }]);
  expect(await findRollupFaults(database)).toEqual([]);
  const discarded = await run(["discard", "3"]);
  expect([discarded.code, discarded.lines]).toEqual([0, [{ id: 3, outcome: "discarded" }]]);
  expect(await database.sql`SELECT FROM dead_click`).toHaveLength(0);
});

test("wrong arguments, settings and databases are told apart, and no password is shown", async () => {
  const unreachable = "postgres://operator:hush-hush@127.0.0.1:1/stats";
  const runs = await Promise.all([
    run(["--help"]),
    run(["replay"]),
    run(["list", "--limit", "0"]),
    run(["list"], { CLICK_RETENTION_DAYS: "0" }),
    run(["list"], { STATS_DATABASE_URL: unreachable }),
    run(["show", "x"]),
    run(["list"], { STATS_DATABASE_URL: null, LINKFENCE_DATA_DIR: "/nowhere" }),
  ]);
  expect(runs.map(({ code }) => code)).toEqual([0, 64, 64, 78, 69, 64, 69]);
  expect(runs[1]?.output).toContain("name the letters to replay by their ids, which list shows, or say --all\n");
  expect(runs[4]?.output).toMatch(/cannot be used .*set STATS_DATABASE_URL/);
  expect(runs[5]?.output).toContain('the id "x" must be a whole number from 1 to');
  expect(runs[6]?.output).toMatch(/no embedded database .* \/nowhere: no server .*\. Start linkfence/);
  for (const { output } of runs) expect(output).not.toContain("hush-hush");
});
