// The start command as a person uses it: from nothing to a followed and counted link, down again, and up on the same data.
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createApiClient,
  createHttpClient,
  findFreePorts,
  killStartedProcesses,
  type RunningProcess,
  until,
  watchProcess,
} from "@linkfence/testkit";

const STARTER = ["scripts/dist/start.js"];
let directory: string;
let base: number;
const http = createHttpClient();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-start-"));
  base = await findFreePorts(40);
});
// One that should have ended, and did not, would hold the ports of all that come after it.
afterEach(killStartedProcesses);
afterAll(async () => {
  http.close();
  await rm(directory, { recursive: true, force: true });
});

function start(env: Record<string, string> = {}): RunningProcess {
  const { PATH = "", HOME = "" } = process.env;
  // Room for a million links, the default, takes a process half a second of a processor to set aside at each start.
  const settings = { LINKFENCE_DATA_DIR: directory, LINKFENCE_PORT_BASE: String(base), CACHE_MAX_ENTRIES: "50000" };
  return watchProcess(
    spawn(process.execPath, STARTER, { env: { PATH, HOME, ...settings, ...env }, stdio: ["ignore", "pipe", "pipe"] }),
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Has a signal come twice, as one wish: it stops in good order and kills nobody. */
async function stopTwice(starter: RunningProcess, signal: "SIGHUP" | "SIGINT"): Promise<void> {
  starter.kill(signal);
  await starter.printed(`${signal}, stopping`);
  starter.kill(signal);
  expect(await starter.exited).toEqual({ code: 0, signal: null });
  expect(starter.output()).toMatch(/linkfence: stopped\n$/);
  expect(starter.output()).not.toMatch(/ again, |SIGKILL/);
  for (const offset of [0, 1, 2, 20]) expect(await listens(base + offset)).toBe(false);
}

describe("the start command", () => {
  test("brings everything up, prints the key once, serves on two redirects, continues with the same data, and stops in good order when it is hung up", async () => {
    const fresh = await mkdtemp(join(directory, "fresh-"));
    const env = { LINKFENCE_DATA_DIR: fresh, CLICK_SPOOL_DIR: join(fresh, "clicks", "here") };
    const first = start({ ...env, LINKFENCE_REDIRECTS: "2" });
    await first.printed("linkfence is ready.");
    const keyFile = join(fresh, "admin-key");
    const key = (await readFile(keyFile, "utf8")).trim();
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    const secretFile = join(fresh, "click-ingest-secret");
    const secret = (await readFile(secretFile, "utf8")).trim();
    expect((await stat(secretFile)).mode & 0o777).toBe(0o600);
    const unknown = await http.send(`http://127.0.0.1:${base + 2}`, "/v1/links/kept/stats");
    expect(unknown.status).toBe(401);
    await first.printed("Ctrl-C stops");
    expect(first.output()).not.toContain(secret);
    expect(first.output().split(key)).toHaveLength(2);

    const api = createApiClient(http, `http://127.0.0.1:${base + 1}`, key);
    const body = { target: "https://example.com/kept", alias: "kept" };
    expect((await api("POST", "/v1/links", body)).status).toBe(201);
    for (const port of [base, base + 20]) {
      const answer = await http.send(`http://127.0.0.1:${port}`, "/kept");
      expect([answer.status, answer.headers.location]).toEqual([302, "https://example.com/kept"]);
    }
    // Its last clicks are handed over while the services stop.
    const exit = await first.stop();
    expect(exit).toEqual({ code: 0, signal: null });
    expect((await readdir(env.CLICK_SPOOL_DIR)).sort()).toEqual(["redirect", "redirect-2"]);
    for (const offset of [0, 1, 2, 10, 11, 12, 20, 30]) expect(await listens(base + offset)).toBe(false);

    const left = join(env.CLICK_SPOOL_DIR, "redirect-2");
    await writeFile(join(left, "clicks-000000000001.spool"), Buffer.alloc(600));
    const second = start({ ...env, REDIRECT_WORKERS: "2" });
    await second.printed("linkfence is ready.");
    expect(second.output()).toMatch(/^\[redirect\] .*"message":"listening".*"workers":2/m);
    // What was put there, and nothing of the process that had the directory before: that one sent it all.
    expect(second.output()).toContain(`clicks (88 bytes) wait in ${left}: no process is started for them`);
    expect(second.output()).not.toContain(key);
    expect((await http.send(`http://127.0.0.1:${base}`, "/kept")).status).toBe(302);
    const total = async () => (await api<{ total: number }>("GET", "/v1/links/kept/stats")).json.total;
    await until(async () => (await total()) >= 3);
    expect(await total()).toBe(3);
    expect((await api("POST", "/v1/links", body)).status).toBe(409);
    // Its terminal closes, which hangs up more than once.
    await stopTwice(second, "SIGHUP");
  });

  test("takes the rest down with a clear message when a service dies", async () => {
    const starter = start();
    await starter.printed("linkfence is ready.");
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const children: number[] = [];
    for (const pid of pids) {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      if (status.includes(`PPid:\t${starter.pid}\n`)) children.push(Number(pid));
    }
    const commands = await Promise.all(children.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8")));
    const write = children[commands.findIndex((command) => command.includes("services/write"))];
    expect(write).toBeDefined();
    process.kill(write ?? 0, "SIGKILL");
    expect(await starter.exited).toEqual({ code: 1, signal: null });
    expect(starter.output()).toContain("write ended with SIGKILL, which came from outside");
    for (const pid of children) await until(() => !isAlive(pid));
    expect(children.length).toBeGreaterThan(3);
  });

  test("leaves no process behind when it is killed itself, starts again on the same data, and stops in good order by Ctrl-C", async () => {
    const killed = start();
    await killed.printed("linkfence is ready.");
    killed.kill("SIGKILL");
    await killed.exited;
    for (const offset of [0, 1, 2, 20]) await until(async () => !(await listens(base + offset)));
    const again = start();
    await again.printed("linkfence is ready.");
    // Ctrl-C is pressed, which npm passes on a second time.
    await stopTwice(again, "SIGINT");
  });

  test.each(["making a PostgreSQL", "[click-ingest]"])(
    "that is broken off while it starts (%s) stops what there is, and takes nothing of that for a fault",
    async (sign) => {
      const fresh = await mkdtemp(join(directory, "fresh-"));
      const starter = start({ LINKFENCE_DATA_DIR: fresh });
      await starter.printed(sign);
      starter.kill("SIGINT");
      expect(await starter.exited).toEqual({ code: 0, signal: null });
      expect(starter.output()).not.toMatch(/linkfence is ready|linkfence: cannot|^\s+at /m);
      for (const offset of [0, 1, 2, 20]) expect(await listens(base + offset)).toBe(false);
    },
  );

  test("refuses wrong settings of any service before it starts anything, all at once, and prints no secret", async () => {
    const secret = "hunter2#x";
    const starter = start({
      LINKFENCE_REDIRECTS: "2",
      CACHE_TTL_MS: "soon",
      BATCH_MAX: "0",
      TARGET_PRIVATE_HOSTS: "maybe",
      LISTEN_DATABASE_URL: `postgres://u:${secret}@h/db`,
    });
    expect((await starter.exited).code).toBe(78);
    for (const name of ["CACHE_TTL_MS", "BATCH_MAX", "TARGET_PRIVATE_HOSTS", "LISTEN_DATABASE_URL"])
      expect(starter.output()).toContain(name);
    expect(starter.output()).not.toContain(secret);
  });

  test("ends as for any refused setting where a service cannot use the file that one names", async () => {
    const starter = start({ CLICK_MMDB_FILE: join(directory, "none.mmdb") });
    expect((await starter.exited).code).toBe(78);
    expect(starter.output()).toContain("CLICK_MMDB_FILE must name a readable file in MaxMind's format");
    expect(starter.output()).toContain("redirect ended with status 78: its last lines above say why");
    expect(starter.output()).not.toContain("linkfence is ready");
  });

  test("refuses a variable of its own prefix that it does not know, and says which there are", async () => {
    const starter = start({ LINKFENCE_DATADIR: directory });
    expect((await starter.exited).code).toBe(78);
    expect(starter.output()).toContain("LINKFENCE_DATADIR is not a setting: there are LINKFENCE_DATA_DIR,");
    expect(starter.output()).not.toContain("stopping");
  });

  test("takes a setting from a file, and refuses a data directory that is none", async () => {
    const file = join(directory, "setting");
    await writeFile(file, "not an origin\n");
    const starter = start({ PUBLIC_BASE_URL_FILE: file, LINKFENCE_DATA_DIR: file });
    expect((await starter.exited).code).toBe(78);
    expect(starter.output()).toContain("PUBLIC_BASE_URL must be an http:// or https:// URL");
    await writeFile(file, "https://sho.rt\n");
    const other = start({ PUBLIC_BASE_URL_FILE: file, LINKFENCE_DATA_DIR: file });
    expect((await other.exited).code).toBe(78);
    expect(other.output()).toContain("LINKFENCE_DATA_DIR cannot be made");
    const third = start({ LINKFENCE_DATA_DIR: directory, CLICK_SPOOL_DIR: file });
    expect((await third.exited).code).toBe(78);
    expect(third.output()).toContain("CLICK_SPOOL_DIR cannot be made");
  });

  test.each([
    { argument: "--help", code: 0 },
    { argument: "--hepl", code: 64 },
  ])("answers $argument where nothing is installed, and starts nothing", async ({ argument, code }) => {
    // Without a PATH there is no npm, which it would need to install and build.
    const asked = watchProcess(
      spawn(process.execPath, ["scripts/start.mjs", argument], { env: {}, stdio: ["ignore", "pipe", "pipe"] }),
    );
    expect(await asked.exited).toEqual({ code, signal: null });
    expect(asked.output()).toContain("Usage: npm start");
    expect(asked.output().includes("unknown argument --hepl")).toBe(code !== 0);
  });

  test("says which port is taken and what to do", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(base + 1, "127.0.0.1", resolve));
    const starter = start();
    expect((await starter.exited).code).toBe(1);
    expect(starter.output()).toContain(`port ${base + 1} is taken, by another linkfence perhaps`);
    expect(starter.output()).toContain("LINKFENCE_PORT_BASE");
    await new Promise((resolve) => other.close(resolve));
  });
});
