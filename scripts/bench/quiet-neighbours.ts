// What redirects feel of a statistics side that is away, frozen or locked, of a main database that is frozen, of revocations,
// and of an export: the longest of a hundred answers at a steady rate, beside the same while all is well. The rate is one that the process answers at once, so that nothing else waits.
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  createApiClient,
  createHttpClient,
  type RunningService,
  readMetric,
  startFaultProxy,
  startService,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import { startExporter } from "../../tests/evidence/exporter.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { startBenchWrite } from "./bench-write.ts";
import { openClicks, WHOLE_ORDER } from "./export.ts";
import { percentile, ratios } from "./numbers.ts";
import { runOpenLoop } from "./open-loop.ts";
import { withSql } from "./own-server.ts";
import { addOwnerKey } from "./owner-key.ts";
import { readDropped } from "./redirect-world.ts";
import { BIG_OWNER, openSeeded, pickActive } from "./seed.ts";

/** Requests a second: far below what a process answers, and enough for a p99 of thirty answers in each stretch. */
const RATE = 1000;
const SECONDS = 3;
const GRACE_MS = 5000;
const LINKS = 1000;
const REVOCATIONS_A_SECOND = 10;
/** With the fault the p99 may be this much of that without. */
const WORSE_MAX = 1.05;

type Fault = { name: string; begin: () => Promise<void> | void; end: () => Promise<void> | void };

/** The services with a line that can be cut on each side of the ingest, and between the redirect and the main database. */
async function openPlace(url: string, statsUrl: string, key: string) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-bench-neighbours-"));
  const toDatabase = await startFaultProxy(Number(new URL(statsUrl).port));
  const toMain = await startFaultProxy(Number(new URL(url).port));
  await mkdir(join(directory, "exports"));
  await mkdir(join(directory, "spool"));
  const exporter = await startExporter(toDatabase.through(statsUrl), { EXPORT_DIR: join(directory, "exports") });
  const ingest = exporter.service;
  await waitUntilReady(ingest);
  const toIngest = await startFaultProxy(Number(new URL(ingest.url).port));
  const redirect = await startService("redirect", {
    DATABASE_URL: toMain.through(url),
    CLICK_INGEST_URL: toIngest.through(ingest.url),
    CLICK_SPOOL_DIR: join(directory, "spool"),
    CACHE_TTL_MS: "3600000",
  });
  await waitUntilReady(redirect);
  const write = await startBenchWrite(url);
  await waitUntilReady(write);
  const http = createHttpClient(REVOCATIONS_A_SECOND);
  return {
    ...{ redirect, ingest, exporter, toDatabase, toIngest, toMain, api: createApiClient(http, write.url, key) },
    async close(): Promise<void> {
      http.close();
      await write.stop();
      await redirect.stop();
      await ingest.stop();
      await toIngest.close();
      await toDatabase.close();
      await toMain.close();
      await rm(directory, { recursive: true });
    },
  };
}
type Place = Awaited<ReturnType<typeof openPlace>>;

/** Something that goes on until it is ended. */
function goOn(work: (signal: AbortSignal) => Promise<void>): Pick<Fault, "begin" | "end"> {
  let stop = new AbortController();
  let going = Promise.resolve();
  return {
    begin() {
      stop = new AbortController();
      going = work(stop.signal);
      going.catch(() => {}); // told at the end
    },
    async end() {
      stop.abort();
      await going;
    },
  };
}

/** Revokes links that nobody follows, so many a second. */
const revokeOn = ({ api }: Place) =>
  goOn(async (signal) => {
    while (!signal.aborted) {
      const created = await api<{ code: string }>("POST", "/v1/links", {
        target: "https://www.example.com/articles/42",
      });
      const [{ status }] = await Promise.all([
        api("DELETE", `/v1/links/${created.json.code}`),
        pause(1000 / REVOCATIONS_A_SECOND),
      ]);
      if (status !== 200) throw new Error(`a revocation was answered ${status}`);
    }
  });

/** Writes the same export again and again. */
const exportOn = ({ exporter }: Place) =>
  goOn(async (signal) => {
    while (!signal.aborted) {
      const { id } = await exporter.order({ ...WHOLE_ORDER, idempotencyKey: null, format: "csv" });
      const { state, error } = await exporter.ended(id);
      if (state !== "SUCCEEDED") throw new Error(`the export is ${state}: ${error?.detail}`);
    }
  });

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

function listFaults(place: Place, statsUrl: string): Fault[] {
  const { ingest, toDatabase, toIngest, toMain } = place;
  return [
    { name: "the main database mute", begin: () => toMain.set("hang"), end: () => toMain.set("pass") },
    { name: `${REVOCATIONS_A_SECOND} revocations a second`, ...revokeOn(place) },
    { name: "an export being written", ...exportOn(place) },
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

type Urls = { url: string; statsUrl: string };

async function measure({ results, tell, pace }: Bench, { url, statsUrl }: Urls, codes: readonly string[]) {
  const place = await openPlace(url, statsUrl, await addOwnerKey(url, BIG_OWNER));
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
      for (let round = 0; round < pace.rounds; round += 1) {
        tell(`${fault.name}: round ${round + 1} of ${pace.rounds}`);
        for (const turn of round % 2 === 0 ? [well, disturbed] : [disturbed, well]) {
          await turn();
          await settled(redirect);
        }
      }
      results.spread(`p99 while all is well, beside ${fault.name}`, p99.well, "ms");
      results.spread(`p99 with ${fault.name}`, p99.disturbed, "ms");
      results.atMost(`p99 with ${fault.name} ÷ while all is well`, ratios(p99.disturbed, p99.well), WORSE_MAX);
    }
    results.figure("clicks accepted", await readMetric(redirect, "linkfence_clicks_accepted_total"));
    results.atMost("clicks dropped", await readDropped(redirect), 0);
  } finally {
    await place.close();
  }
}

export const quietNeighbours: Subject = {
  shows:
    "the p99 of redirects while a database or the ingest is away, frozen or locked, links are revoked, or an export is written, beside the same while all is well",
  links: 20_000,
  // Pairs for each fault, each in the other order than the one before.
  rounds: 8,
  async run(bench) {
    const { server, size, results, tell } = bench;
    const url = await openSeeded(server, size, tell);
    const codes = await pickActive(url, LINKS);
    const statsUrl = await openClicks(server, bench.clicks.count, tell);
    results.noteLoad("before");
    await measure(bench, { url, statsUrl }, codes);
    results.noteLoad("after");
  },
};
