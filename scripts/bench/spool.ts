// What the spool costs redirects: the same process with it and without it, in turn, under clients that ask for links in
// memory, beside an ingest that takes every batch at once.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readMetric, startService, waitFor, waitUntilReady } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { runClosedLoop } from "./closed-loop.ts";
import { cpuOf } from "./cpu-time.ts";
import { median, percentile } from "./numbers.ts";
import { openSeeded, pickActive } from "./seed.ts";

/** So many that the process is busy and none waits long for its turn. */
const CLIENTS = 64;
/** Pairs, each in the other order than the one before. */
const ROUNDS = 10;
const SECONDS = 4;
const LINKS = 1000;
/** A browser's, so that a click is as long as a real one. */
const USER_AGENT =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";

/** Takes batches as fast as they come, and looks at nothing of them but how many clicks there are. */
async function startQuickIngest() {
  const mark = Buffer.from('{"id":"');
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    let clicks = 0;
    for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) clicks += 1;
    response.end(JSON.stringify({ received: clicks, inserted: clicks, duplicate: 0, refused: 0 }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

type Way = "with" | "without";
/** Redirects a second, ms, and µs of the process's time on processors for each redirect, by round. */
type Measured = Record<Way, { rate: number[]; p99: number[]; cpu: number[] }>;

async function measure({ tell, results }: Bench, url: string, codes: readonly string[]): Promise<Measured> {
  const ingest = await startQuickIngest();
  const directory = await mkdtemp(join(tmpdir(), "linkfence-bench-spool-"));
  const env = { DATABASE_URL: url, CLICK_INGEST_URL: ingest.url, CACHE_TTL_MS: "3600000" };
  const services = {
    with: await startService("redirect", { ...env, CLICK_SPOOL_DIR: directory }),
    without: await startService("redirect", { ...env, CLICK_SPOOL: "off" }),
  };
  const requests = codes.map((code) => `GET /${code} HTTP/1.1\r\nHost: bench\r\nUser-Agent: ${USER_AGENT}\r\n\r\n`);
  let asked = 0;
  const next = () => requests[asked++ % requests.length] ?? "";
  const load = (way: Way, seconds: number, onAnswer = (_ms: number) => {}) =>
    runClosedLoop({ url: services[way].url, clients: CLIENTS, seconds, next, status: 302, onAnswer });
  const measured: Measured = { with: { rate: [], p99: [], cpu: [] }, without: { rate: [], p99: [], cpu: [] } };
  const ways: readonly Way[] = ["with", "without"];
  for (const way of ways) {
    await waitUntilReady(services[way]);
    await load(way, SECONDS);
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    tell(`round ${round + 1} of ${ROUNDS}`);
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
      const ms: number[] = [];
      const cpuBefore = await cpuOf(services[way].pid);
      measured[way].rate.push(await load(way, SECONDS, (each) => ms.push(each)));
      measured[way].p99.push(percentile(ms, 0.99));
      await waitFor(
        "the last clicks",
        async () => (await readMetric(services[way], "linkfence_clicks_in_flight")) === 0,
      );
      measured[way].cpu.push((1000 * ((await cpuOf(services[way].pid)) - cpuBefore)) / ms.length);
    }
  }
  for (const way of ways) {
    const read = (name: string) => readMetric(services[way], `linkfence_clicks_${name}_total`);
    results.figure(`clicks accepted, ${way} spool`, await read("accepted"));
    const dropped = await readMetric(services[way], 'linkfence_clicks_dropped_total{reason="ring-full"}');
    results.atMost(`clicks dropped, ${way} spool`, dropped, 0);
    await services[way].stop();
  }
  await rm(directory, { recursive: true });
  ingest.close();
  return measured;
}

export const spool: Subject = {
  shows: "how many redirects a second a process answers with the spool, beside the same without it",
  links: 20_000,
  async run(bench) {
    const { server, size, results, tell } = bench;
    const url = await openSeeded(server, size, tell);
    const codes = await pickActive(url, LINKS);
    results.noteLoad("before");
    const measured = await measure(bench, url, codes);
    results.noteLoad("after");
    for (const way of ["with", "without"] as const) {
      results.figure(`redirects a second, ${way} spool: median`, median(measured[way].rate));
      results.figure(`p99, ${way} spool: median`, median(measured[way].p99), "ms");
      results.figure(
        `processor time for a redirect and its click, ${way} spool: median`,
        median(measured[way].cpu),
        "µs",
      );
    }
    const ratio = (a: readonly number[], b: readonly number[]) =>
      median(a.map((each, i) => each / (b[i] ?? Number.NaN)));
    results.atLeast("redirects, with the spool ÷ without", ratio(measured.with.rate, measured.without.rate), 0.95);
    // Says the same of a machine that is busy otherwise.
    results.atLeast("processor time, without the spool ÷ with", ratio(measured.without.cpu, measured.with.cpu), 0.95);
    results.atLeast("p99, without the spool ÷ with", ratio(measured.without.p99, measured.with.p99), 0.95);
  },
};
