// Pages of an owner with a tenth of all links: what one costs at the top and far down, in buffers and in milliseconds,
// and how long callers wait at a steady rate; beside pages that are counted off by OFFSET.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createDatabase } from "@linkfence/db";
import { createHttpClient, type HttpClient, watchProcess } from "@linkfence/testkit";
import type { Position } from "../../services/write/src/domain/cursor.ts";
import { readCursors } from "../../services/write/src/store/cursors.ts";
import { type PageQuery, selectPage } from "../../services/write/src/store/page-rows.ts";
import { createPlanner, LIMIT, type Planner, PRICE } from "../../tests/evidence/page-prices.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { startBenchWrite } from "./bench-write.ts";
import { median, percentile } from "./numbers.ts";
import { selectOffsetPage } from "./offset-listing.ts";
import { runOpenLoop } from "./open-loop.ts";
import { withSql } from "./own-server.ts";
import { addOwnerKey } from "./owner-key.ts";
import { BIG_OWNER, openSeeded, TAGS } from "./seed.ts";

/** Where far down is, as a share of the owner's links: page 40,000 of 50,000 where they have a million. */
const DEEP = 0.8;
/** Pages that random depths are drawn from. */
const SAMPLES = 500;
/** Neither in buffers nor in time may a page far down cost more than so many times the first. */
const GROWTH = 1.2;
const ROUNDS = 300;
/** Three quarters of what one core of a small server lists in a second: a service that is busy, and not flooded. */
const RATE = 370;
const SECONDS = 20;
/** OFFSET does not keep up with the rate, and need not be watched for long. */
const OFFSET_SECONDS = 5;
const GRACE_MS = 5000;
const ALL = { state: null, tag: null, createdAfter: null, createdBefore: null };

type Place = Position & { place: number };
/** `pages` are positions at equal distances, from the top down; `deep` is the one at DEEP. */
type Places = { deep: Place; pages: readonly Place[] };

/** Reads the positions of pages at equal distances, behind each of which there is a whole page. */
function findPlaces(url: string, { links }: { links: number }): Promise<Places> {
  const pages = Math.floor(links / 10 / LIMIT);
  const every = LIMIT * Math.max(1, Math.floor(pages / SAMPLES));
  const deepPlace = LIMIT * Math.floor(DEEP * pages);
  return withSql(url, 1, async (sql) => {
    const places = await sql<Place[]>`
      SELECT place::int AS place, code,
             to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt"
        FROM (SELECT code, created_at, row_number() OVER (ORDER BY created_at DESC, code COLLATE "C" DESC) AS place
                FROM link WHERE owner = ${BIG_OWNER}) AS numbered
       WHERE place <= ${links / 10 - LIMIT} AND (place % ${every}::int = 0 OR place = ${deepPlace}) ORDER BY place`;
    const deep = places.find(({ place }) => place === deepPlace);
    if (!deep) throw new Error("the seeded database has too few links");
    return { deep, pages: places.filter(({ place }) => place !== deepPlace) };
  });
}

/** How much is told of what went wrong. */
const SHOWN = 200;
const FAULTS_SHOWN = 5;

type Filter = Partial<PageQuery["filter"]>;

/** What a page may cost by filter; a scan that finds too little may look at any number of links up to its own bound. */
function filtersOf({ pages }: Places): readonly [string, Filter, number][] {
  const at = (share: number) => pages[Math.floor(pages.length * share)]?.createdAt ?? null;
  return [
    ["all links", {}, PRICE.plain],
    ["a stretch of time", { createdAfter: at(0.9), createdBefore: at(0.1) }, PRICE.plain],
    ["active links", { state: "active" }, PRICE.plain],
    ["revoked links", { state: "revoked" }, PRICE.plain],
    ["a tag of half the links", { tag: TAGS.many }, PRICE.byTag],
    ["a tag of one link in a hundred", { tag: TAGS.few }, PRICE.byTag],
    ["a tag and a state of few links", { tag: TAGS.many, state: "revoked" }, PRICE.scanByTag],
    ["expired links, of which there are none", { state: "expired" }, PRICE.scan],
  ];
}

async function priceInBuffers({ results }: Bench, url: string, places: Places): Promise<void> {
  for (const kind of ["generic", "custom"] as const) {
    const planner = createPlanner(url, kind);
    for (const [what, filter, bound] of filtersOf(places)) {
      const query = { owner: BIG_OWNER, filter: { ...ALL, ...filter }, limit: LIMIT };
      const price = (after: Position | null) => planner.explain((sql) => selectPage(sql, { ...query, after }));
      const [first, deep] = [await price(null), await price(places.deep)];
      results.atMost(`buffers, ${what}, ${kind} plan, first page`, first, bound);
      // Far down a page may begin and end elsewhere in its index pages.
      const growth = bound < PRICE.scan ? Math.ceil(GROWTH * first) : bound;
      results.atMost(`buffers, ${what}, ${kind} plan, far down`, deep, Math.min(bound, growth));
    }
    await priceOffset(planner, kind, { results, deep: places.deep });
    await planner.end();
  }
}

async function priceOffset(
  planner: Planner,
  kind: string,
  { results, deep }: Pick<Bench, "results"> & { deep: Place },
) {
  const page = { limit: LIMIT + 1, offset: deep.place };
  const buffers = await planner.explain((sql) => selectOffsetPage(sql, BIG_OWNER, page));
  results.figure(`buffers of the same page far down by OFFSET, ${kind} plan`, buffers);
}

type Api = { url: string; key: string; http: HttpClient };

/** Returns what was answered instead of a page, or null. */
async function readPage({ url, key, http }: Api, after: string | null): Promise<string | null> {
  const path = `/v1/links?limit=${LIMIT}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`;
  const { status, body } = await http.send(url, path, { headers: { Authorization: `Bearer ${key}` } });
  return status === 200 && body.includes('"code"') ? null : `${status} ${body.slice(0, SHOWN)}`;
}

/** In turn, and each other time the other way round. Returns the medians in ms. */
async function compareLatency(api: Api, deep: string) {
  const times = { first: [] as number[], deep: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const which of round % 2 === 0 ? (["first", "deep"] as const) : (["deep", "first"] as const)) {
      const startedAt = performance.now();
      const fault = await readPage(api, which === "first" ? null : deep);
      if (fault !== null) throw new Error(`a page was answered ${fault}`);
      times[which].push(performance.now() - startedAt);
    }
  }
  return { first: median(times.first), deep: median(times.deep) };
}

/** Pages at random depths, at the steady rate. */
async function load({ results, tell }: Bench, api: Api, what: { name: string; cursors: string[]; seconds: number }) {
  const { name, cursors, seconds } = what;
  const draw = () => cursors[Math.floor(Math.random() * cursors.length)] ?? null;
  tell(`${RATE} pages a second ${name} for ${seconds} s`);
  const faults = new Map<string, number>();
  const send = async () => {
    const fault = await readPage(api, draw()).catch((error: unknown) => String(error));
    if (fault !== null) faults.set(fault, (faults.get(fault) ?? 0) + 1);
    return fault === null;
  };
  const loop = { rate: RATE, graceMs: GRACE_MS, send };
  await runOpenLoop({ ...loop, seconds: 2 });
  const { latencies, failed } = await runOpenLoop({ ...loop, seconds });
  const share = latencies.length / (latencies.length + failed);
  results.figure(`answered in time ${name}`, share * 100, "%");
  for (const [fault, times] of [...faults].slice(0, FAULTS_SHOWN)) tell(`${times} times: ${fault}`);
  // What was not answered took longer than any that was.
  const all = [...latencies, ...Array<number>(failed).fill(Number.POSITIVE_INFINITY)];
  const told = (p: number) => (Number.isFinite(percentile(all, p)) ? percentile(all, p) : `over ${GRACE_MS}`);
  for (const p of [0.5, 0.99, 0.999]) results.figure(`p${p * 100} ${name}`, told(p), "ms");
  return percentile(all, 0.99);
}

async function measureKeyset(bench: Bench, url: string, places: Places, key: string) {
  const db = createDatabase({ url, applicationName: "bench", max: 1, queryTimeoutMs: 10_000 });
  const cursors = await readCursors(db);
  await db.close();
  const cursorOf = ({ code, createdAt }: Place) =>
    cursors.issue({ code, createdAt }, { owner: BIG_OWNER, filter: ALL });
  const write = await startBenchWrite(url);
  const http = createHttpClient(256);
  const api = { url: write.url, key, http };
  const { first, deep } = await compareLatency(api, cursorOf(places.deep));
  const page = Math.floor(places.deep.place / LIMIT).toLocaleString("en");
  bench.results.figure("median of the first page over HTTP", first, "ms");
  bench.results.figure(`median of page ${page} over HTTP`, deep, "ms");
  bench.results.atMost(`page ${page} ÷ first page`, deep / first, GROWTH);
  const p99 = await load(bench, api, { name: "by cursor", cursors: places.pages.map(cursorOf), seconds: SECONDS });
  http.close();
  await write.stop();
  return p99;
}

async function measureOffset(bench: Bench, url: string, places: Places, key: string) {
  const entry = fileURLToPath(new URL("offset-service.ts", import.meta.url));
  const env = { ...process.env, DATABASE_URL: url, PORT: "0", OPS_PORT: "0" };
  const child = spawn(process.execPath, ["--conditions=source", "--import", "tsx", entry], { env, stdio: "pipe" });
  const service = watchProcess(child);
  const { port } = await service.logged(({ message }) => message === "listening");
  const http = createHttpClient(256);
  const api = { url: `http://127.0.0.1:${String(port)}`, key, http };
  const times: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    const startedAt = performance.now();
    await readPage(api, String(places.deep.place));
    times.push(performance.now() - startedAt);
  }
  bench.results.figure("median of the same page far down by OFFSET over HTTP", median(times), "ms");
  const cursors = places.pages.map(({ place }) => String(place));
  const p99 = await load(bench, api, { name: "by OFFSET", cursors, seconds: OFFSET_SECONDS });
  http.close();
  await service.stop();
  return p99;
}

export const list: Subject = {
  shows: "what a page of an owner's links costs at the top and far down, and how long callers wait for it",
  links: 10_000_000,
  async run(bench) {
    const url = await openSeeded(bench.server, bench.size, bench.tell);
    const key = await addOwnerKey(url, BIG_OWNER);
    bench.tell("looking where the pages begin");
    const places = await findPlaces(url, bench.size);
    await priceInBuffers(bench, url, places);
    bench.results.noteLoad("before the latencies");
    const keyset = await measureKeyset(bench, url, places, key);
    const offset = await measureOffset(bench, url, places, key);
    bench.results.atLeast("p99 by OFFSET ÷ p99 by cursor", Math.min(offset, 1e6) / keyset, 2);
    bench.results.noteLoad("after the latencies");
  },
};
