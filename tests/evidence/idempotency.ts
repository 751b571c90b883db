// One key, one creation: many requests at once, and a process that is killed before it could answer.
import { createDatabase } from "@linkfence/db";
import {
  createHttpClient,
  createTestDatabase,
  makeAdminKey,
  type RunningService,
  startPooler,
  startService,
  type TestDatabase,
  waitFor,
} from "@linkfence/testkit";
import {
  BATCH,
  common,
  createKeyedPost,
  LINK,
  LINKS,
  type Told,
} from "../../services/write/src/idempotency.fixture.ts";
import { closingAfterwards } from "./closing.ts";
import type { EvidenceCase, Report } from "./report.ts";

const REQUESTS = 200;
const PROCESSES = 3;
/** Far above what a statement takes on a busy machine: what is shown here is no deadline of the database. */
const QUERY_TIMEOUT_MS = 10_000;

async function countLinks({ sql }: TestDatabase): Promise<number> {
  const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM link`;
  return row?.n ?? Number.NaN;
}

/** What all requests of one key were told, as far as it matters. */
function tally(answers: readonly Told[]) {
  return {
    statuses: [...new Set(answers.map(({ status }) => status))],
    differentAnswers: new Set(answers.map((answer) => JSON.stringify(common(answer)))).size,
    firsts: answers.filter(({ replayed }) => replayed === undefined).length,
  };
}

export const l3: EvidenceCase = {
  id: "L3",
  shows:
    "two hundred requests with one Idempotency-Key make one link, or one batch, and are told the same to the byte, by one process or by three; so is the repetition after a SIGKILL between commit and answer",
  run: (report) =>
    closingAfterwards(async (later) => {
      const database = await createTestDatabase("main");
      later(database.drop);
      const pooler = await startPooler(Number(new URL(database.url).port));
      later(pooler.close);
      const adminKey = await makeAdminKey(database.url);
      const http = createHttpClient(REQUESTS);
      later(http.close);
      let write = await startWrite(pooler.through(database.url));
      later(() => write.stop());
      const processes: RunningService[] = [];
      later(() => Promise.all(processes.map((process) => process.stop())));
      let turn = 0;
      const post = (key: string, body?: string, path?: string) => {
        const all = [write, ...processes];
        const { url } = all[turn++ % all.length] ?? write;
        return createKeyedPost(http, url, adminKey)(key, body, path);
      };

      pooler.withhold("idempotency_record");
      const lost = post("killed").catch(() => "no answer");
      await waitFor("the commit", async () => (await countLinks(database)) === 1);
      write.kill("SIGKILL");
      report.check("what the first request was told", await lost, "no answer");
      write = await startWrite(pooler.through(database.url));
      const again = [await post("killed"), await post("killed")];
      report.check("its repetitions", tally(again), { statuses: [201], differentAnswers: 1, firsts: 0 });
      report.check("links", await countLinks(database), 1);

      const race = async (name: string) => {
        await raceOneKey(report, database, () => post(`${name}-link`), { status: 201, links: 1 });
        await raceOneKey(report, database, () => post(`${name}-batch`, LINKS, BATCH), { status: 200, links: 2 });
      };
      await race("one");
      while (processes.length < PROCESSES - 1) processes.push(await startWrite(database.url));
      report.note(`now at ${PROCESSES} processes in turn`);
      await race("shared");
      const other = await post("one-link", `${LINK} `);
      report.check("the same key with another body", [other.status, other.replayed], [422, undefined]);
    }),
};

const startWrite = (url: string): Promise<RunningService> =>
  startService("write", {
    DATABASE_URL: url,
    PUBLIC_BASE_URL: "https://sho.example",
    QUERY_TIMEOUT_MS: `${QUERY_TIMEOUT_MS}`,
  });

/** Sends all requests of one key at once. */
async function raceOneKey(
  report: Report,
  database: TestDatabase,
  post: () => Promise<Told>,
  expected: { status: number; links: number },
): Promise<void> {
  const before = await countLinks(database);
  const startedAt = performance.now();
  const answers = await Promise.all(Array.from({ length: REQUESTS }, post));
  const ms = performance.now() - startedAt;
  const { status, links } = expected;
  report.check(`${REQUESTS} at once`, tally(answers), { statuses: [status], differentAnswers: 1, firsts: 1 });
  report.check("links made by them", (await countLinks(database)) - before, links);
  report.figure(`${REQUESTS} requests for ${links === 1 ? "a link" : "a batch"} in ${ms.toFixed(0)} ms`);
}

export const l3c: EvidenceCase = {
  id: "L3c",
  shows:
    "two hundred requests that look for their key first and then create, without its lock, make two hundred links under one key",
  control: true,
  run: (report) =>
    closingAfterwards(async (later) => {
      const database = await createTestDatabase("main");
      later(database.drop);
      const options = { applicationName: "evidence", max: 16, queryTimeoutMs: QUERY_TIMEOUT_MS };
      const db = createDatabase({ url: database.url, ...options });
      later(() => db.close());
      const look = () => db.run((sql) => sql`SELECT body FROM idempotency_record WHERE key = 'one-key'`);
      const create = (n: number) =>
        db.transaction(async (sql) => {
          await sql`INSERT INTO link (code, target, owner, kind, created_by)
            VALUES (${`naive-${n}`}, 'https://example.com/', 'ann', 'RANDOM', 'k')`;
          await sql`
            INSERT INTO idempotency_record (owner, call, key, request_digest, status, body)
            VALUES ('ann', 'POST /v1/links', 'one-key', ${new Uint8Array(32)}, 201, '{}') ON CONFLICT DO NOTHING`;
        });
      // All have looked before the first one creates, as it happens where they come at once.
      const found = await Promise.all(Array.from({ length: REQUESTS }, look));
      await Promise.all(found.map((kept, n) => (kept.length === 0 ? create(n) : undefined)));
      report.check("links under one key", await countLinks(database), REQUESTS);
    }),
};
