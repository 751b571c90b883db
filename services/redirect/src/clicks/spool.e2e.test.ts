// A real process, its spool on a real disk, and an ingest that keeps what it is sent.
import { mkdtemp, readdir, readFile, rm, symlink, truncate, unlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import {
  createHttpClient,
  createTestDatabase,
  type RunningService,
  readMetric,
  spawnProcess,
  startService,
  type TestDatabase,
  until,
  waitUntilReady,
} from "@linkfence/testkit";
import { makeMmdb } from "../store/mmdb.fixture.ts";

let database: TestDatabase;
let ingest: Server;
let ingestUrl: string;
let directory: string;
let clicks: Click[];
let started: RunningService[];
const http = createHttpClient();

beforeAll(async () => {
  database = await createTestDatabase("main");
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES ('abc', 'https://example.com/', 'ann', 'ALIAS', 'k')`;
  ingest = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const batch = (JSON.parse(Buffer.concat(chunks).toString()) as { clicks: Click[] }).clicks;
    clicks.push(...batch);
    const received = batch.length;
    response.end(JSON.stringify({ received, inserted: received, duplicate: 0, refused: 0 }));
  });
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  ingestUrl = `http://127.0.0.1:${(ingest.address() as AddressInfo).port}`;
});
afterAll(async () => {
  http.close();
  ingest.close();
  ingest.closeAllConnections();
  await database.drop();
});
beforeEach(async () => {
  clicks = [];
  started = [];
  directory = await mkdtemp(join(tmpdir(), "linkfence-spool-"));
});
afterEach(async () => {
  await Promise.all(started.map((each) => each.stop()));
  await rm(directory, { recursive: true });
});

const settings = () => ({
  ...{ DATABASE_URL: database.url, CLICK_INGEST_URL: ingestUrl, CLICK_SPOOL_DIR: directory },
  CLICK_FLUSH_TIMEOUT_MS: "500",
});
async function start(env: Record<string, string> = {}): Promise<RunningService> {
  const redirect = await startService("redirect", { ...settings(), ...env });
  started.push(redirect);
  await waitUntilReady(redirect);
  return redirect;
}
const AWAY = { CLICK_INGEST_URL: "http://127.0.0.1:9" };
const follow = (redirect: RunningService, headers = {}, method = "GET") =>
  http.send(redirect.url, "/abc", { headers, method });

describe("a spool", () => {
  test("belongs to one process; the next one may have it when that has been killed", async () => {
    const first = await start(AWAY);
    await follow(first);
    const second = spawnProcess("services/redirect/dist/main.js", { ...settings(), PORT: "0", OPS_PORT: "0" });
    expect(await second.exited).toEqual({ code: 78, signal: null });
    expect(second.output()).toContain("CLICK_SPOOL_DIR cannot be used");
    expect(second.output()).toContain("another process uses it");
    await until(async () => (await readMetric(first, "linkfence_clicks_at_risk")) === 0);
    first.kill("SIGKILL");
    await first.exited;

    const next = await start();
    await until(() => clicks.length === 1);
    expect(await readMetric(next, "linkfence_clicks_recovered_total")).toBe(1);
    // A thousand beyond what had been accepted when it was last written down: before the click, or after it.
    expect([999, 1000]).toContain(await readMetric(next, "linkfence_clicks_lost_unclean_max_total"));
    expect(next.records().filter(({ message }) => message.includes("ended uncleanly"))).toHaveLength(1);
  });

  test.each([
    ["missing", () => join(directory, "none"), "there is no such directory"],
    ["a file", () => join(directory, "file"), "it is no directory"],
  ])("whose directory is %s stops the start, with 78", async (_what, path, reason) => {
    await writeFile(join(directory, "file"), "");
    const env = { ...settings(), CLICK_SPOOL_DIR: path(), PORT: "0", OPS_PORT: "0" };
    const refused = spawnProcess("services/redirect/dist/main.js", env);
    expect(await refused.exited).toEqual({ code: 78, signal: null });
    expect(refused.output()).toContain(`CLICK_SPOOL_DIR cannot be used (${path()}): ${reason}`);
  });

  test("keeps what a stop cannot send, and the next process sends it; nothing counts as lost", async () => {
    const first = await start({ ...AWAY, CLICK_FLUSH_TIMEOUT_MS: "0" });
    for (let count = 0; count < 20; count += 1) await follow(first);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(first.records().filter(({ message }) => message.includes("remain in the spool"))).toMatchObject([
      { clicks: 20 },
    ]);

    const next = await start();
    await until(() => clicks.length === 20);
    expect(new Set(clicks.map(({ id }) => id)).size).toBe(20);
    expect(await readMetric(next, "linkfence_clicks_lost_unclean_max_total")).toBe(0);
    await next.stop();
    expect((await readdir(directory)).sort()).toEqual(["account", "lock"]);
  });
});

describe("files of a spool", () => {
  test("that are removed while it is in use are made anew, and a kill loses nothing", async () => {
    const first = await start(AWAY);
    await follow(first);
    await until(async () => (await readMetric(first, "linkfence_clicks_at_risk")) === 0);
    for (const name of await readdir(directory)) await unlink(join(directory, name));
    await until(async () => (await readdir(directory)).length === 3);
    await until(async () => (await readMetric(first, "linkfence_clicks_at_risk")) === 0);
    for (const file of ["account", "lock", "segment"])
      expect(await readMetric(first, `linkfence_spool_files_lost_total{file="${file}"}`)).toBe(1);
    expect(first.records().filter(({ message }) => message.includes("no longer where it was"))).toHaveLength(3);
    const second = spawnProcess("services/redirect/dist/main.js", { ...settings(), PORT: "0", OPS_PORT: "0" });
    expect(await second.exited).toEqual({ code: 78, signal: null });
    first.kill("SIGKILL");
    await first.exited;
    const next = await start();
    await until(() => clicks.length === 1);
    expect(await readMetric(next, "linkfence_clicks_lost_unclean_unknown_total")).toBe(0);
  });

  test("that are damaged while nobody uses it are told of at the start, the account as well", async () => {
    const first = await start(AWAY);
    await follow(first);
    await first.stop();
    await writeFile(join(directory, "account"), Buffer.alloc(2048));
    const [name = ""] = (await readdir(directory)).filter((each) => each.endsWith(".spool"));
    await truncate(join(directory, name), 520);
    // No file of the spool's, and it leads nowhere.
    await symlink("nowhere", join(directory, "clicks-000000000009.spool"));
    const next = await start(AWAY);
    const told = next.records().map(({ message }) => message);
    expect(told).toContainEqual(expect.stringContaining("is unknown: its account is missing or damaged"));
    expect(told).toContainEqual(expect.stringContaining("segments of the spool are damaged"));
    expect(await readMetric(next, "linkfence_clicks_lost_unclean_unknown_total")).toBe(1);
  });
});

describe("a click", () => {
  test("says whose link it was and whether it was a prefetch; a HEAD makes none", async () => {
    const redirect = await start();
    const answers = [
      await follow(redirect),
      await follow(redirect, { "Sec-Purpose": "prefetch;prerender" }),
      await follow(redirect, {}, "HEAD"),
      await follow(redirect, { "X-Purpose": "preview" }, "HEAD"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([302, 302, 302, 302]);
    await until(() => clicks.length === 2);
    expect(clicks.map(({ owner, prefetch, country }) => [owner, prefetch, country])).toEqual([
      ["ann", undefined, undefined],
      ["ann", true, undefined],
    ]);
    expect(await readMetric(redirect, "linkfence_clicks_accepted_total")).toBe(2);
  });

  test("says its country, and no address is on the disk or in what is sent", async () => {
    const file = join(directory, "countries.mmdb");
    await writeFile(file, makeMmdb("NZ", "DE"));
    const env = { CLICK_MMDB_FILE: file, CLICK_ADDRESS_HEADER: "X-Real-IP", CLICK_COUNTRY_HEADER: "X-Country" };
    const redirect = await start({ ...env, CLICK_SPOOL_SEGMENT_BYTES: "16384" });
    await follow(redirect, { "X-Real-IP": "10.98.76.54" });
    await follow(redirect, { "X-Real-IP": "130.98.76.54" });
    await follow(redirect, { "X-Real-IP": "230.98.76.54" });
    await follow(redirect, { "X-Real-IP": "10.98.76.54", "X-Country": "FR" });
    const texts = async () => {
      const names = (await readdir(directory)).filter((name) => name.endsWith(".spool"));
      return (await Promise.all(names.map((name) => readFile(join(directory, name), "latin1")))).join("");
    };
    await until(() => clicks.length === 4);
    expect(clicks.map(({ country }) => country)).toEqual(["NZ", "DE", undefined, "FR"]);
    const stored = await texts();
    expect(stored).toContain('"country":"NZ"');
    expect(`${stored}${JSON.stringify(clicks)}${redirect.output()}`).not.toContain("98.76.54");
  });
});
