// What redirects feel of a statistics side that is away, frozen or locked: the longest of a hundred answers at a steady
// rate, beside the same while all is well. The rate is one that the process answers at once, so that nothing else waits.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@linkfence/db/migrate";
import {
  type RunningService,
  readMetric,
  startFaultProxy,
  startService,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { median, percentile } from "./numbers.ts";
import { runOpenLoop } from "./open-loop.ts";
import { withSql } from "./own-server.ts";
import { openSeeded, pickActive } from "./seed.ts";

const DATABASE = "neighbours";
/** Requests a second: far below what a process answers, and enough for a p99 of thirty answers in each stretch. */
const RATE = 1000;
const SECONDS = 3;
const GRACE_MS = 5000;
/** Pairs for each fault, each in the other order than the one before. */
const ROUNDS = 8;
const LINKS = 1000;
/** With the fault the p99 may be this much of that without. */
const WORSE_MAX = 1.05;

type Fault = { name: string; begin: () => Promise<void> | void; end: () => Promise<void> | void };

/** The services with a line that can be cut on each side of the ingest. */
async function openPlace(url: string, statsUrl: string) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-bench-neighbours-"));
  const toDatabase = await startFaultProxy(Number(new URL(statsUrl).port));
  const ingest = await startService("click-ingest", { STATS_DATABASE_URL: toDatabase.through(statsUrl) });
  await waitUntilReady(ingest);
  const toIngest = await startFaultProxy(Number(new URL(ingest.url).port));
  const redirect = await startService("redirect", {
    DATABASE_URL: url,
    CLICK_INGEST_URL: toIngest.through(ingest.url),
    CLICK_SPOOL_DIR: directory,
    CACHE_TTL_MS: "3600000",
  });
  await waitUntilReady(redirect);
  return {
    ...{ redirect, ingest, toDatabase, toIngest },
    async close(): Promise<void> {
      await redirect.stop();
      await ingest.stop();
      await toIngest.close();
      await toDatabase.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Holds the lock of a table until it is told to let go. */
function createLock(statsUrl: string): Pick<Fault, "begin" | "end"> {
  let letGo = () => {};
  let held: Promise<unknown> = Promise.resolve();
  return {
    begin: () =>
      new Promise((resolve, reject) => {
        held = withSql(statsUrl, 1, (sql) =>
          sql.begin(async (locked) => {
            await locked`LOCK TABLE click_hour IN ACCESS EXCLUSIVE MODE`;
            const released = new Promise<void>((release) => {
              letGo = release;
            });
            resolve();
            await released;
          }),
        );
        held.catch(reject);
      }),
    async end() {
      letGo();
      await held;
    },
  };
}

function listFaults(place: Awaited<ReturnType<typeof openPlace>>, statsUrl: string): Fault[] {
  const { ingest, toDatabase, toIngest } = place;
  return [
    { name: "the statistics database away", begin: () => toDatabase.set("refuse"), end: () => toDatabase.set("pass") },
    { name: "the statistics database mute", begin: () => toDatabase.set("hang"), end: () => toDatabase.set("pass") },
    { name: "its tables locked", ...createLock(statsUrl) },
    { name: "click-ingest away", begin: () => toIngest.set("refuse"), end: () => toIngest.set("pass") },
    {
      name: "click-ingest frozen",
      begin: () => void ingest.kill("SIGSTOP"),
      end: () => void ingest.kill("SIGCONT"),
    },
  ];
}

/** Returns the p99 in ms. Rejects where a request was not answered as it should be. */
async function measureOnce(redirect: RunningService, codes: readonly string[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const send = async (index: number) => {
    const call = get(`${redirect.url}/${codes[index % codes.length]}`, { agent });
    const [response] = await once(call, "response");
    response.resume();
    await once(response, "end");
    return response.statusCode === 302;
  };
  const { latencies, failed } = await runOpenLoop({ rate: RATE, seconds: SECONDS, graceMs: GRACE_MS, send });
  agent.destroy();
  if (failed > 0) throw new Error(`${failed} redirects were not answered`);
  return percentile(latencies, 0.99);
}

const settled = (redirect: RunningService) =>
  waitFor("the last clicks", async () => (await readMetric(redirect, "linkfence_clicks_in_flight")) === 0);

async function measure({ results, tell }: Bench, url: string, statsUrl: string, codes: readonly string[]) {
  const place = await openPlace(url, statsUrl);
  const { redirect } = place;
  try {
    await measureOnce(redirect, codes);
    for (const fault of listFaults(place, statsUrl)) {
      const p99 = { well: [] as number[], disturbed: [] as number[] };
      const disturbed = async () => {
        await fault.begin();
        p99.disturbed.push(await measureOnce(redirect, codes));
        await fault.end();
      };
      const well = async () => void p99.well.push(await measureOnce(redirect, codes));
      for (let round = 0; round < ROUNDS; round += 1) {
        tell(`${fault.name}: round ${round + 1} of ${ROUNDS}`);
        for (const turn of round % 2 === 0 ? [well, disturbed] : [disturbed, well]) {
          await turn();
          await settled(redirect);
        }
      }
      results.figure(`p99 while all is well, beside ${fault.name}: median`, median(p99.well), "ms");
      results.figure(`p99 with ${fault.name}: median`, median(p99.disturbed), "ms");
      results.atMost(`p99 with ${fault.name} ÷ while all is well`, median(p99.disturbed) / median(p99.well), WORSE_MAX);
    }
    results.figure("clicks accepted", await readMetric(redirect, "linkfence_clicks_accepted_total"));
    results.atMost("clicks dropped", await readDropped(redirect), 0);
  } finally {
    await place.close();
  }
}

async function readDropped(redirect: RunningService): Promise<number> {
  const reasons = ["ring-full", "spool-full", "batch-refused", "stopped", "damaged"];
  const counts = await Promise.all(
    reasons.map((reason) => readMetric(redirect, `linkfence_clicks_dropped_total{reason="${reason}"}`)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

export const neighbours: Subject = {
  shows: "the p99 of redirects while the statistics side is away, frozen or locked, beside the same while all is well",
  links: 20_000,
  async run(bench) {
    const { server, size, results, tell } = bench;
    const url = await openSeeded(server, size, tell);
    const codes = await pickActive(url, LINKS);
    const statsUrl = await server.startEmpty(DATABASE);
    await migrate(statsUrl, "stats");
    results.noteLoad("before");
    await measure(bench, url, statsUrl, codes);
    results.noteLoad("after");
  },
};
