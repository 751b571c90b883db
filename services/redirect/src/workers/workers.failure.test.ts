// Workers that die, that are replaced, that cannot start, and a primary that dies.
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  findFreePorts,
  type RunningService,
  readMetric,
  spawnProcess,
  until,
} from "@linkfence/testkit";
import { AWAY, countReady, isAlive, pidsOf, prepareWorkers, reload } from "./started-workers.fixture.ts";

let at: Awaited<ReturnType<typeof prepareWorkers>>;
beforeAll(async () => {
  at = await prepareWorkers();
});
afterAll(() => at.close());
beforeEach(() => at.begin());
afterEach(() => at.end());

/** Follows the link on kept connections and on new ones, until `work` is done. Returns the answers and what went wrong. */
async function underLoad(service: RunningService, work: () => Promise<unknown>) {
  const over = new AbortController();
  const answers = new Map<number, number>();
  const failures: string[] = [];
  const kept = createHttpClient(4);
  const visit = async (isNew: boolean) => {
    while (!over.signal.aborted) {
      const client = isNew ? createHttpClient(1) : kept;
      try {
        const { status } = await client.send(service.url, "/abc");
        answers.set(status, (answers.get(status) ?? 0) + 1);
      } catch (error) {
        failures.push((error as NodeJS.ErrnoException).code ?? String(error));
      }
      if (isNew) client.close();
    }
  };
  const visitors = [...Array(4).keys()].flatMap(() => [visit(false), visit(true)]);
  try {
    await work();
  } finally {
    over.abort();
    await Promise.all(visitors);
    kept.close();
  }
  return { answers: Object.fromEntries(answers), failures };
}

const spawn = (workers: number, env: Record<string, string> = {}) =>
  spawnProcess("services/redirect/dist/main.js", {
    ...{ ...at.settings(), PORT: "0", OPS_PORT: "0", REDIRECT_WORKERS: `${workers}` },
    ...env,
  });

describe("a reload", () => {
  test("replaces every worker under load, and no request fails, on kept connections nor on new ones", async () => {
    const service = await at.start(3);
    const before = pidsOf(service);
    const { answers, failures } = await underLoad(service, async () => expect(await reload(service)).toBe("done"));
    const after = pidsOf(service);
    expect(failures).toEqual([]);
    expect(Object.keys(answers)).toEqual(["302"]);
    expect([...after.keys()].sort()).toEqual([1, 2, 3]);
    expect([...after.values()].filter((pid) => [...before.values()].includes(pid))).toEqual([]);
    expect([...before.values()].filter(isAlive)).toEqual([]);
    expect(await at.registered()).toHaveLength(3);
    expect(await readMetric(service, "linkfence_worker_unexpected_ends_total")).toBe(0);
    const { 302: redirects } = answers;
    await until(() => at.clicks().length === redirects);
    expect(new Set(at.clicks().map(({ id }) => id)).size).toBe(redirects);
  });

  test("by ending workers before others are there instead, fails requests", async () => {
    const service = await at.start(2);
    const before = [...pidsOf(service).values()];
    const { failures } = await underLoad(service, async () => {
      for (const pid of before) process.kill(pid, "SIGTERM");
      await until(async () => before.every((pid) => ![...pidsOf(service).values()].includes(pid)));
      await until(async () => (await countReady(service)) === 2);
    });
    expect(failures.length).toBeGreaterThan(0);
  });

  test("whose new worker cannot start leaves the old ones in their places, and says so", async () => {
    const service = await at.start(2);
    const before = pidsOf(service);
    // The place that the next worker would have in the spool.
    await writeFile(join(at.directory(), "worker-3"), "");
    const { answers, failures } = await underLoad(service, async () => expect(await reload(service)).toBe("failed"));
    expect([failures, Object.keys(answers)]).toEqual([[], ["302"]]);
    expect(pidsOf(service)).toEqual(before);
    expect([...before.values()].every(isAlive)).toBe(true);
    expect(service.records()).toContainEqual(
      expect.objectContaining({ level: "error", message: expect.stringContaining("did not become ready") }),
    );
  });
});

describe("a worker that is killed", () => {
  test("is replaced, also where no other is left, and its successor takes up what it left", async () => {
    const port = await findFreePorts(1);
    const service = await at.start(2, { ...AWAY, PORT: `${port}` });
    const client = createHttpClient();
    for (let count = 0; count < 4; count += 1) await client.send(service.url, "/abc");
    client.close();
    await until(async () => (await readMetric(service, "linkfence_clicks_at_risk")) === 0);
    const before = pidsOf(service);
    for (const pid of before.values()) process.kill(pid, "SIGKILL");
    await until(async () => (await countReady(service)) === 2);
    expect([...pidsOf(service).values()].filter((pid) => [...before.values()].includes(pid))).toEqual([]);
    expect(await readMetric(service, "linkfence_clicks_recovered_total")).toBe(4);
    expect(await readMetric(service, "linkfence_worker_unexpected_ends_total")).toBe(2);
    const another = createHttpClient();
    expect((await another.send(service.url, "/abc")).status).toBe(302);
    another.close();
  });

  test("again and again before it is ready ends all of it, with 1 and the reason", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { port: number };
    const child = spawn(2, { PORT: `${port}` });
    expect(await child.exited).toEqual({ code: 1, signal: null });
    taken.close();
    expect(child.output()).toContain("EADDRINUSE");
    expect(child.output()).toMatch(/worker \d ended 5 times before it was ready: giving up/);
  });
});

describe("the spool", () => {
  test("that another process uses stops the start, with 78", async () => {
    await at.start(2);
    const second = spawn(2);
    expect(await second.exited).toEqual({ code: 78, signal: null });
    expect(second.output()).toContain("another process uses it");
    expect(second.output()).toMatch(/REDIRECT_WORKERS: worker \d cannot start/);
  });

  test.each([1, 2])(
    "of three workers is emptied by %i that come after them, and counts each click once",
    async (fewer) => {
      const first = await at.start(3, { ...AWAY, CLICK_FLUSH_TIMEOUT_MS: "0" });
      for (let count = 0; count < 9; count += 1) {
        const client = createHttpClient();
        await client.send(first.url, "/abc");
        client.close();
      }
      expect(await first.stop()).toEqual({ code: 0, signal: null });
      const kept = first.records().filter(({ message }) => message.includes("remain in the spool"));
      expect(kept.map(({ clicks }) => Number(clicks)).reduce((sum, clicks) => sum + clicks, 0)).toBe(9);
      expect(kept.length).toBe(3);
      const next = await at.start(fewer);
      await until(() => at.clicks().length === 9);
      expect(new Set(at.clicks().map(({ id }) => id)).size).toBe(9);
      await until(async () => (await readMetric(next, "linkfence_clicks_inserted_total")) === 9);
      expect(await readMetric(next, "linkfence_clicks_recovered_total")).toBe(9);
      expect(await readMetric(next, "linkfence_clicks_in_flight")).toBe(0);
    },
  );

  test("keeps what a worker that was replaced could not send, for one of those that are there", async () => {
    const service = await at.start(2, { ...AWAY, CLICK_FLUSH_TIMEOUT_MS: "0" });
    for (let count = 0; count < 6; count += 1) {
      const client = createHttpClient();
      await client.send(service.url, "/abc");
      client.close();
    }
    expect(await reload(service)).toBe("done");
    // Of two workers the first one's place went to the second one's successor, and the second one's to nobody.
    await until(async () => (await readMetric(service, "linkfence_clicks_in_flight")) === 6);
    await service.stop();
    await at.start(2);
    await until(() => at.clicks().length === 6);
    expect(new Set(at.clicks().map(({ id }) => id)).size).toBe(6);
  });
});

describe("a stop", () => {
  test("under load cuts off no answer, and ends with 0", async () => {
    const service = await at.start(2);
    const client = createHttpClient(8);
    const answers: number[] = [];
    const visit = async () => {
      for (;;) {
        try {
          answers.push((await client.send(service.url, "/abc")).status);
          if (answers.length === 100) service.kill("SIGTERM");
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException;
          if (code === "ECONNREFUSED") return;
          // A kept connection that was closed at the instant of the next request: nothing of that request was read.
          expect(["ECONNRESET", "EPIPE"]).toContain(code);
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, visit));
    client.close();
    expect(new Set(answers)).toEqual(new Set([302]));
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(await at.registered()).toEqual([]);
  });

  test("goes on answering for STOP_DELAY_MS; a second signal ends all of it at once", async () => {
    const service = await at.start(2, { STOP_DELAY_MS: "5000" });
    const pids = [...pidsOf(service).values()];
    service.kill("SIGTERM");
    await until(async () => (await fetch(`${service.opsUrl}/readyz`)).status === 503);
    const client = createHttpClient();
    expect((await client.send(service.url, "/abc")).status).toBe(302);
    client.close();
    expect(pids.every(isAlive)).toBe(true);
    service.kill("SIGTERM");
    expect(await service.exited).toEqual({ code: 1, signal: null });
    await until(() => !pids.some(isAlive));
    expect(service.records().filter(({ message }) => message === "stopped")).toEqual([]);
  });

  test("that every process of a group is told of is one stop, with 0", async () => {
    const service = await at.start(2);
    const pids = [...pidsOf(service).values()];
    for (const pid of pids) process.kill(pid, "SIGHUP");
    for (const pid of [...pids, service.pid]) process.kill(pid, "SIGINT");
    for (const pid of pids) process.kill(pid, "SIGTERM");
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(service.records().filter(({ message }) => message === "stopped")).toHaveLength(3);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test("follows the end of the primary, however that ended, in good order", async () => {
    const service = await at.start(2, AWAY);
    const pids = [...pidsOf(service).values()];
    const client = createHttpClient();
    await client.send(service.url, "/abc");
    service.kill("SIGKILL");
    await until(() => !pids.some(isAlive));
    client.close();
    expect(await at.registered()).toEqual([]);
    await service.exited;
    expect(service.records().filter(({ message }) => message === "stopped")).toHaveLength(2);
    await at.start(2);
    await until(() => at.clicks().length === 1);
  });
});
