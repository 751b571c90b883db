// From the commit of a revocation to the first answer that knows of it, on a redirect process that idles and on one that is
// saturated, beside what the server takes to tell anybody of anything: an empty NOTIFY, from its sending to its arrival.
import { once } from "node:events";
import { Agent, get } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type postgres from "postgres";
import type { Bench } from "./bench-subject.ts";
import { CannotMeasure, type Cores, takeCores } from "./cores.ts";
import { findLoad, runLoad } from "./load/load.ts";
import { median, percentile } from "./numbers.ts";
import { withSql } from "./own-server.ts";
import { FEW_HEADERS, openRedirectWorld, type RedirectWorld } from "./redirect-world.ts";
import { BIG_OWNER } from "./seed.ts";

/** Enough for a p99 of a few each. */
const REVOCATIONS = 400;
/** They come one after the other, not as fast as they can. */
const PAUSE_MS = 20;
/** Far more than the saturated ones take; ends before the load is a reason not to have waited. */
const LOAD_SECONDS = 40;
/** Bounds of this machine, in ms. */
const IDLE_MAX = 5;
const SATURATED_MAX = 30;

type Place = { world: RedirectWorld; sql: postgres.Sql; agent: Agent; heard: (told: () => void) => void };

async function ask({ world, agent }: Place, code: string): Promise<number | undefined> {
  const call = get(`${world.redirect.url}/${code}`, { agent, headers: FEW_HEADERS });
  const [response] = await once(call, "response");
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

/** ms from the commit, as its caller knows of it, to the first answer that knows of it. */
async function revokeAndAsk(place: Place, code: string): Promise<number> {
  const { sql } = place;
  if ((await ask(place, code)) !== 302) throw new Error("a link was not to be followed before it was revoked");
  await sql`SELECT * FROM revoke_links(${[code]}::text[], ${BIG_OWNER}, 'bench')`;
  const committedAt = performance.now();
  while ((await ask(place, code)) !== 410);
  return performance.now() - committedAt;
}

/** ms from the sending to the arrival at another connection, which may be before the commit's own answer. */
async function notify({ sql, heard }: Place): Promise<number> {
  const arrived = new Promise<number>((resolve) => heard(() => resolve(performance.now())));
  const sentAt = performance.now();
  await sql`NOTIFY bench_empty`;
  return (await arrived) - sentAt;
}

/** Revocations and empty notifications in turn, until the codes are used up. */
async function measure(place: Place, codes: readonly string[], { results }: Bench, how: string, bound: number) {
  const [answers, notes]: [number[], number[]] = [[], []];
  for (const code of codes) {
    answers.push(await revokeAndAsk(place, code));
    notes.push(await notify(place));
    await pause(PAUSE_MS);
  }
  results.figure(`an empty NOTIFY beside it, ${how}, sending to arrival: median`, median(notes), "ms");
  results.figure(`an empty NOTIFY beside it, ${how}, sending to arrival: p99`, percentile(notes, 0.99), "ms");
  results.figure(`commit to new answer, ${how}: median`, median(answers), "ms");
  results.atMost(`commit to new answer, ${how}: p99 in ms`, percentile(answers, 0.99), bound);
}

async function measureBoth(bench: Bench, place: Place, cores: Cores): Promise<void> {
  const { world, sql } = place;
  const rows = await sql<{ code: string }[]>`
    SELECT code FROM link WHERE owner = ${BIG_OWNER} AND state = 'ACTIVE' AND expires_at IS NULL
     ORDER BY code COLLATE "C" DESC LIMIT ${REVOCATIONS * 2}`;
  const codes = rows.map(({ code }) => code);
  bench.tell(`revocations on a redirect process on core ${cores.server}: ${codes.length}`);
  await measure(place, codes.slice(0, REVOCATIONS), bench, "idle", IDLE_MAX);
  let over = false;
  const load = { port: world.target.port, headers: FEW_HEADERS, rate: null, status: 302 };
  // Another link than those that are revoked.
  const loading = runLoad(await findLoad(), { ...load, paths: world.codes.one, seconds: LOAD_SECONDS }).finally(() => {
    over = true;
  });
  await measure(place, codes.slice(REVOCATIONS), bench, "saturated", SATURATED_MAX);
  if (over) bench.results.refuse("commit to new answer, saturated", "the load ended before the revocations did");
  const { rate } = await loading;
  bench.results.figure("redirects meanwhile", rate, "a second");
}

/** Measures both; where the cores cannot be dealt out, says so. */
export async function measureNewAnswers(bench: Bench): Promise<void> {
  let cores: Cores;
  try {
    cores = await takeCores();
  } catch (error) {
    if (!(error instanceof CannotMeasure)) throw error;
    bench.results.refuse("commit to new answer", error.message);
    return;
  }
  const world = await openRedirectWorld(bench, cores, { codes: 1 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    await withSql(world.url, 1, async (sql) => {
      let told = () => {};
      const listening = await sql.listen("bench_empty", () => told());
      const heard = (next: () => void) => {
        told = next;
      };
      await measureBoth(bench, { world, sql, agent, heard }, cores);
      await listening.unlisten();
    });
  } finally {
    agent.destroy();
    await world.close();
  }
}
