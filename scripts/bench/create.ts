// Creations over HTTP beside what the database alone does for the same statements, and a thousand in a call beside one.
import { arrayLiteral, type Database, type Sql } from "@linkfence/db";
import postgres from "postgres";
import { createCounts } from "../../services/write/src/counts.ts";
import { draftLink } from "../../services/write/src/domain/link.ts";
import { createKeyStore } from "../../services/write/src/store/api-keys.ts";
import { insertLink, linkColumns } from "../../services/write/src/store/link-rows.ts";
import { createLinkStore } from "../../services/write/src/store/links.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { startBenchWrite } from "./bench-write.ts";
import { runClosedLoop, writePost } from "./closed-loop.ts";
import { median } from "./numbers.ts";
import { addOwnerKey } from "./owner-key.ts";
import { findPgbench, PGBENCH_MISSING, runPgbench, type Statement } from "./pgbench.ts";
import { BIG_OWNER, openSeeded } from "./seed.ts";

/**
 * With a few clients the time of each call counts, which has three processes taking turns on the machine's cores; with
 * many it is what each call costs.
 */
const FEW = 8;
const MANY = 32;
const ROUNDS = 5;
const SECONDS = 3;
const BATCH = 1000;
const TARGET = "https://www.example.com/articles/42?utm_source=newsletter&utm_medium=email";

function toText(value: unknown): string | null {
  if (Array.isArray(value)) return arrayLiteral(value);
  return value === null ? null : String(value);
}

/**
 * What a creation that comes alone sends to the database, taken from the stores themselves: the look-up of the key, then
 * the link, which is `json`, as several can go together; and the same link as a plain INSERT of one row, which is cheaper.
 */
async function captureStatements(url: string, keyId: string) {
  const sent: Statement[] = [];
  const debug = (_connection: number, text: string, values: unknown[]) =>
    void sent.push({ text, values: values.map(toText) });
  const sql = postgres(url, { max: 1, debug, onnotice: () => {} });
  const run = <T>(statement: (sql: Sql) => T) => statement(sql as unknown as Sql);
  const db = { run, read: run } as unknown as Database;
  await createKeyStore(db).findActive(keyId);
  const draft = draftLink({ target: TARGET }, { ownHosts: [], privateHosts: "allow", now: Date.now() });
  const links = createLinkStore({ db, counts: createCounts(), newCode: () => ":code" });
  // The code is no code, so that nothing is created; the statement is what is wanted.
  const author = { owner: BIG_OWNER, keyId };
  await links.create(draft, author).catch(() => {});
  const row = { code: ":code", kind: "RANDOM", draft } as const;
  await run(
    (as) => as`${insertLink(as, row, author)} ON CONFLICT (code) DO NOTHING RETURNING ${linkColumns(as)}`,
  ).catch(() => {});
  await sql.end({ timeout: 1 });
  const lookUp = sent.find(({ text }) => text.includes("FROM api_key"));
  const [json, insert] = sent.filter(({ text }) => text.includes("INSERT"));
  if (!lookUp || !json || !insert) throw new Error("the stores did not send what a creation sends");
  return { lookUp, json, insert };
}

type Rates = Record<"http" | "same" | "plain" | "insert" | "batch", number[]>;

async function measureRates({ tell }: Bench, url: string, key: string, program: string | undefined) {
  const keyId = key.split("_")[1] ?? "";
  const { lookUp, json, insert } = await captureStatements(url, keyId);
  const write = await startBenchWrite(url);
  const one = writePost("/v1/links", key, JSON.stringify({ target: TARGET }));
  const many = writePost("/v1/links:batch", key, JSON.stringify({ links: Array(BATCH).fill({ target: TARGET }) }));
  const over = { url: write.url, seconds: SECONDS };
  await runClosedLoop({ ...over, clients: FEW, seconds: 2, next: () => one, status: 201 });
  const all = new Map<number, Rates>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const clients of [FEW, MANY]) {
      tell(`round ${round + 1} of ${ROUNDS}, ${clients} clients`);
      const rates = all.get(clients) ?? { http: [], same: [], plain: [], insert: [], batch: [] };
      all.set(clients, rates);
      rates.http.push(await runClosedLoop({ ...over, clients, next: () => one, status: 201 }));
      if (program !== undefined) {
        const pgbench = { program, url, clients, seconds: SECONDS };
        rates.same.push(await runPgbench(pgbench, [lookUp, json]));
        rates.plain.push(await runPgbench(pgbench, [lookUp, insert]));
        rates.insert.push(await runPgbench(pgbench, [insert]));
      }
      if (clients === FEW) {
        const calls = await runClosedLoop({ ...over, clients, next: () => many, status: 200 });
        rates.batch.push(calls * BATCH);
      }
    }
  }
  await write.stop();
  return all;
}

const ratio = (a: readonly number[], b: readonly number[]) => median(a.map((rate, i) => rate / (b[i] ?? Number.NaN)));

export const create: Subject = {
  shows:
    "how many links are created in a second, singly and a thousand in a call, beside what pgbench gets out of the database",
  links: 1_000_000,
  async run(bench) {
    const { results, server, size, tell } = bench;
    const url = await openSeeded(server, size, tell);
    const key = await addOwnerKey(url, BIG_OWNER);
    const program = await findPgbench();
    results.noteLoad("before");
    const all = await measureRates(bench, url, key, program);
    results.noteLoad("after");
    if (program === undefined) results.figure("pgbench", PGBENCH_MISSING);
    for (const [clients, { http, same, plain, insert, batch }] of all) {
      const suffix = `, ${clients} clients`;
      results.figure(`single creations over HTTP${suffix}`, median(http), "a second");
      if (batch.length > 0) {
        results.figure(`links created in calls of ${BATCH}${suffix}`, median(batch), "a second");
        results.atLeast(`in calls of ${BATCH} ÷ singly${suffix}`, ratio(batch, http), 15);
      }
      if (program === undefined) continue;
      results.figure(`pgbench, the key's look-up and the same INSERT${suffix}`, median(same), "a second");
      results.figure(`pgbench, the key's look-up and a plain INSERT${suffix}`, median(plain), "a second");
      results.figure(`pgbench, a plain INSERT alone${suffix}`, median(insert), "a second");
      results.figure(`over HTTP ÷ pgbench with a plain INSERT alone${suffix}`, ratio(http, insert));
      results.figure(`over HTTP ÷ pgbench with the look-up and a plain INSERT${suffix}`, ratio(http, plain));
      const told = `over HTTP ÷ pgbench with the same statements${suffix}`;
      if (clients === MANY) results.atLeast(told, ratio(http, same), 0.7);
      else results.figure(told, ratio(http, same));
    }
  },
};
