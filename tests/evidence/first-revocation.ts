// Revocations that are the first after a start: acknowledgements confirm them, and nobody waits for a TTL. And many links in
// one call, which are waited for once.
import { migrate } from "@linkfence/db/migrate";
import { createTestDatabase, mapConcurrently, readMetric } from "@linkfence/testkit";
import { fenceMs } from "../../services/write/src/domain/fence.ts";
import { type Effective, type Registered, withRegistered } from "./registered.ts";
import type { EvidenceCase, Report } from "./report.ts";

/** Far longer than the 5 s for which a call waits by itself: what time alone confirms is answered 202. */
const TTL_MS = 60_000;
const REDIRECTS = 2;

/** As an operator has it before the very first start. */
async function createEmptyDatabase() {
  const database = await createTestDatabase("empty");
  await migrate(database.url, "main");
  return database;
}

async function checkFirst(report: Report, at: Registered, when: string, code: string): Promise<void> {
  const { status, effective, sentAt, answeredAt } = await at.revoke(code);
  const { confirmed, by, instances } = effective;
  report.check(when, [status, confirmed, by, instances.acknowledged], [200, true, "acknowledged", REDIRECTS]);
  report.figure(`${when}: ${(answeredAt - sentAt).toFixed(0)} ms`);
}

export const q6: EvidenceCase = {
  id: "Q6",
  shows:
    "the first revocation after the very first start, after a restart of the write service and after one of every redirect process is confirmed by acknowledgements",
  run: (report) =>
    withRegistered({ redirects: REDIRECTS, ttlMs: TTL_MS, database: createEmptyDatabase }, async (at) => {
      const [start = "", write = "", redirects = ""] = await at.create("first-", 3);
      await checkFirst(report, at, "after the first start", start);
      await at.restartWrite();
      await checkFirst(report, at, "after a restart of the write service", write);
      const before = [...at.redirects];
      await Promise.all(before.map(({ service }) => service.stop()));
      await Promise.all(before.map(() => at.add()));
      await checkFirst(report, at, "after a restart of every redirect process", redirects);
    }),
};

export const q6c: EvidenceCase = {
  id: "Q6c",
  shows: "without the mark of a settled history the same call is told to wait for time",
  control: true,
  run: (report) =>
    withRegistered({ redirects: REDIRECTS, ttlMs: TTL_MS }, async (at) => {
      const [code = ""] = await at.create("first-", 1);
      await at.sql`DELETE FROM settled_epoch`;
      const { status, effective } = await at.revoke(code, "?timeoutMs=500");
      report.check("the answer", [status, effective.confirmed], [202, false]);
      const within = effective.effectiveWithinMs ?? Number.POSITIVE_INFINITY;
      report.check("it is in force within the TTL and what clocks may differ", within <= fenceMs(TTL_MS), true);
      report.check("every process had acknowledged it", effective.instances.acknowledged, REDIRECTS);
    }),
};

const BATCH = 200;
const WAITS = 'linkfence_revocations_confirmed_total{by="acknowledged"}';

export const q6b: EvidenceCase = {
  id: "Q6b",
  shows: "two hundred links in one call are waited for once, and no process leads to any of them after the answer",
  run: (report) =>
    withRegistered({ redirects: REDIRECTS, ttlMs: TTL_MS }, async (at) => {
      const codes = await at.create("many-", BATCH);
      const visits = codes.flatMap((code) => at.redirects.map((redirect) => ({ code, redirect })));
      const statuses = async () =>
        new Set(await mapConcurrently(visits, 16, ({ code, redirect }) => redirect.status(code)));
      report.check("answers before", [...(await statuses())], [302]);
      const before = await readMetric(at.write(), WAITS);
      const { status, json } = await at.api<{ effective: Effective }>("POST", "/v1/links:revoke", { codes });
      report.check("the answer", [status, json.effective.confirmed, json.effective.by], [200, true, "acknowledged"]);
      report.check("waits", (await readMetric(at.write(), WAITS)) - before, 1);
      report.check("answers after", [...(await statuses())], [410]);
    }),
};
