// Several workers behind one port: what they look like from outside.
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createHttpClient, readMetric, until } from "@linkfence/testkit";
import { AMOUNTS } from "./merge-metrics.ts";
import { AWAY, countReady, isAlive, pidsOf, prepareWorkers, reload } from "./started-workers.fixture.ts";

let at: Awaited<ReturnType<typeof prepareWorkers>>;
beforeAll(async () => {
  at = await prepareWorkers();
});
afterAll(() => at.close());
beforeEach(() => at.begin());
afterEach(() => at.end());

/** On a connection of its own, so that it goes to whichever worker has its turn. */
async function follow(url: string): Promise<number> {
  const client = createHttpClient();
  try {
    return (await client.send(url, "/abc")).status;
  } finally {
    client.close();
  }
}

async function followOften(url: string, times: number): Promise<number[]> {
  const answers: number[] = [];
  for (let count = 0; count < times; count += 1) answers.push(await follow(url));
  return answers;
}

const pageOf = async (url: string) => (await fetch(`${url}/metrics`)).text();

describe("workers", () => {
  test("stand in the registry one by one, say who they are in the log, and leave it at a stop, which ends with 0", async () => {
    const service = await at.start(3);
    const { port } = new URL(service.url);
    expect(await at.registered()).toEqual(
      [1, 2, 3].map((worker) => expect.stringMatching(`:${port} worker ${worker}$`)),
    );
    const pids = [...pidsOf(service).values()];
    expect(new Set([...pids, service.pid]).size).toBe(4);
    expect(service.records().filter(({ message }) => message === "listening")).toHaveLength(1);
    expect(await followOften(service.url, 6)).toEqual([302, 302, 302, 302, 302, 302]);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(await at.registered()).toEqual([]);
    expect(pids.filter(isAlive)).toEqual([]);
    const stopped = service.records().filter(({ message }) => message === "stopped");
    expect(stopped.map((record) => record.service).sort()).toEqual([
      "redirect",
      "redirect/1",
      "redirect/2",
      "redirect/3",
    ]);
  });

  test("are not there where one is asked for: no process above it, its name and address as ever", async () => {
    const service = await at.start(1);
    expect(pidsOf(service).size).toBe(0);
    expect(await at.registered()).toEqual([expect.stringMatching(/:\d+$/)]);
    expect(await pageOf(service.opsUrl)).not.toContain("linkfence_workers");
  });

  test("get connections in turns, so that one that stands still holds up one of them at the most", async () => {
    const service = await at.start(3);
    const [stuck = 0] = pidsOf(service).values();
    process.kill(stuck, "SIGSTOP");
    const answers = Array.from({ length: 12 }, () => follow(service.url));
    let answered = 0;
    for (const answer of answers) void answer.then(() => (answered += 1));
    await until(() => answered >= 11);
    process.kill(stuck, "SIGCONT");
    expect(new Set(await Promise.all(answers))).toEqual(new Set([302]));
  });

  test("close connections beyond the bound of each, and hand none of them on and on", async () => {
    const service = await at.start(2, { MAX_CONNECTIONS: "1" });
    const open = () =>
      new Promise<{ socket: Socket; closed: Promise<unknown> }>((resolve) => {
        const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
        socket.on("error", () => {});
        const closed = new Promise((end) => socket.resume().once("close", end));
        socket.once("connect", () => resolve({ socket, closed }));
      });
    const held = [await open(), await open()];
    await until(async () => (await readMetric(service, "linkfence_http_connections")) === 2);
    await (await open()).closed;
    expect(await readMetric(service, "linkfence_http_connections_refused_total")).toBe(1);
    for (const { socket } of held) socket.destroy();
    await until(async () => (await readMetric(service, "linkfence_http_connections")) === 0);
    expect(await follow(service.url)).toBe(302);
  });
});

describe("the ops port", () => {
  test("adds up what was counted, tells of each worker what stands, and closes the ledger", async () => {
    const service = await at.start(3);
    await followOften(service.url, 9);
    await until(() => at.clicks().length === 9);
    await until(async () => (await readMetric(service, "linkfence_clicks_inserted_total")) === 9);
    expect(await readMetric(service, 'linkfence_answers_total{outcome="redirect"}')).toBe(9);
    expect(await readMetric(service, "linkfence_clicks_accepted_total")).toBe(9);
    expect(await readMetric(service, "linkfence_clicks_in_flight")).toBe(0);
    const page = await pageOf(service.opsUrl);
    for (const worker of [1, 2, 3]) {
      expect(page).toMatch(new RegExp(`^linkfence_applied_seq{worker="${worker}"} 0$`, "m"));
      expect(page).toMatch(new RegExp(`^linkfence_listening{worker="${worker}"} [01]$`, "m"));
    }
    expect(page.match(/^linkfence_nodejs_gc_duration_seconds_count{kind="minor"} \d+$/gm)).toHaveLength(1);
    // A name that is on no page any more would be added up by nobody.
    for (const name of AMOUNTS) expect(page).toMatch(new RegExp(`^${name}({pool="\\w+"})? `, "m"));
    expect(page).not.toMatch(/ (null|undefined)$/m);
  });

  test("goes on counting where a worker was replaced, or killed", async () => {
    const service = await at.start(2, AWAY);
    await followOften(service.url, 5);
    const ledger = async () => {
      const lines = (await pageOf(service.opsUrl)).split("\n");
      const read = (name: string) =>
        lines
          .filter((line) => line.startsWith(`linkfence_clicks_${name}`) && /^\w+({reason="[a-z-]+"})? /.test(line))
          .reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
      const ends = ["inserted_total", "duplicate_total", "dead_lettered_total", "refused_total", "dropped_total"];
      return {
        begun: read("accepted_total") + read("recovered_total"),
        ended: [...ends, "in_flight", "left_total"].reduce((sum, name) => sum + read(name), 0),
        redirects: await readMetric(service, 'linkfence_answers_total{outcome="redirect"}'),
      };
    };
    expect(await ledger()).toEqual({ begun: 5, ended: 5, redirects: 5 });
    expect(await reload(service)).toBe("done");
    const replaced = await ledger();
    expect(replaced.redirects).toBe(5);
    expect(replaced.ended).toBe(replaced.begun);
    const pid = pidsOf(service).get(1) ?? 0;
    process.kill(pid, "SIGKILL");
    await until(async () => pidsOf(service).get(1) !== pid && (await countReady(service)) === 2);
    const killed = await ledger();
    expect(killed.redirects).toBe(5);
    expect(killed.ended).toBe(killed.begun);
  });

  test("says which worker does not answer, within a deadline, and is ready as long as any worker is", async () => {
    const service = await at.start(2);
    await followOften(service.url, 4);
    expect(await readMetric(service, 'linkfence_answers_total{outcome="redirect"}')).toBe(4);
    const pids = pidsOf(service);
    const [first = 0, second = 0] = [pids.get(1), pids.get(2)];
    process.kill(second, "SIGSTOP");
    await until(async () => (await readMetric(service, 'linkfence_worker_silent{worker="2"}')) === 1);
    expect(await readMetric(service, 'linkfence_worker_silent{worker="1"}')).toBe(0);
    expect(await readMetric(service, "linkfence_worker_unanswered_total")).toBeGreaterThan(0);
    expect(await readMetric(service, 'linkfence_answers_total{outcome="redirect"}')).toBe(4);
    expect(await pageOf(service.opsUrl)).not.toMatch(/^linkfence_applied_seq{worker="2"}/m);
    expect((await fetch(`${service.opsUrl}/readyz`)).status).toBe(200);
    process.kill(first, "SIGSTOP");
    const none = await fetch(`${service.opsUrl}/readyz`);
    expect([none.status, await none.text()]).toEqual([
      503,
      "not ready: worker 1: it does not answer; worker 2: it does not answer\n",
    ]);
    expect((await fetch(`${service.opsUrl}/livez`)).status).toBe(200);
    for (const pid of [first, second]) process.kill(pid, "SIGCONT");
    await until(async () => (await fetch(`${service.opsUrl}/readyz`)).status === 200);
    await until(async () => (await readMetric(service, 'linkfence_worker_silent{worker="2"}')) === 0);
  });
});
