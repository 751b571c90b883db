// Two revocations, the first of which stalls between its row in the log and its commit. The stall is a trigger of this
// database: it waits for a lock that the experiment holds.
import { type TestDatabase, waitFor } from "@linkfence/testkit";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type Scene, withRedirectInProcess } from "./redirect-in-process.ts";
import type { EvidenceCase } from "./report.ts";

type Sql = TestDatabase["sql"];

/** Room for all that happens before it ends, on a busy machine. */
const TTL_MS = 4000;
/** Any number that no lock of the product has. */
const STALL_LOCK = 1;
/** The lock of the log, as the schema names it. */
const LOG_LOCK = 7106915;
/** Reads of the log that have to find the change, if it is ever to be found. */
const SYNCS = 3;

type Outcome = {
  /** What the second revocation did while the first stalled. */
  second: "waits for the lock" | "commits first";
  inOrder: boolean;
  /** Answers for both links when everything committed was applied. */
  statuses: number[];
};

/** Makes every row that names `code` in the log wait, once written, until the function that it returns is called. */
async function stallChangesOf(sql: Sql, code: string): Promise<() => Promise<void>> {
  await sql.unsafe(`
    CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock(${STALL_LOCK}); RETURN NULL; END $$;
    CREATE TRIGGER stall AFTER INSERT ON link_change
      FOR EACH ROW WHEN (NEW.code = '${code}') EXECUTE FUNCTION stall()`);
  const holder = await sql.reserve();
  await holder`SELECT pg_advisory_lock(${STALL_LOCK})`;
  return async () => {
    await holder`SELECT pg_advisory_unlock(${STALL_LOCK})`;
    holder.release();
  };
}

/** Whether somebody waits for that lock, in this database. */
async function someoneWaitsFor(sql: Sql, lock: number): Promise<boolean> {
  const [row] = await sql`SELECT count(*)::int AS waiting FROM pg_locks
    WHERE locktype = 'advisory' AND NOT granted AND objid = ${lock}
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  return row?.waiting > 0;
}

/**
 * Both links in memory; the first revocation stalls, the second follows; then the first goes on. There is a change in the log
 * before: a reader that began with none forgets everything when the first number is missing.
 */
async function overtakeInTheLog({ redirect, database: { sql } }: Scene, [first, second]: [string, string]) {
  const [before = ""] = await insertLinks(sql, "before", 1);
  await revokeLinks(sql, before);
  await redirect.caughtUp();
  for (const code of [first, second]) await redirect.get(code);
  const goOn = await stallChangesOf(sql, first);
  const firstDone = revokeLinks(sql, first);
  firstDone.catch(() => {}); // told below
  await waitFor("the stall", () => someoneWaitsFor(sql, STALL_LOCK));
  let committed = false;
  const secondDone = revokeLinks(sql, second).then((seqs) => {
    committed = true;
    return seqs;
  });
  secondDone.catch(() => {}); // told below
  await waitFor("the second revocation", async () => committed || (await someoneWaitsFor(sql, LOG_LOCK)));
  const did: Outcome["second"] = committed ? "commits first" : "waits for the lock";
  if (committed) await redirect.caughtUp();
  await goOn();
  const [[firstSeq = 0], [secondSeq = 0]] = await Promise.all([firstDone, secondDone]);
  for (let sync = 0; sync < SYNCS; sync += 1) await redirect.caughtUp();
  const statuses = [(await redirect.get(first)).status, (await redirect.get(second)).status];
  return { second: did, inOrder: firstSeq < secondSeq, statuses } satisfies Outcome;
}

export const r5: EvidenceCase = {
  id: "R5",
  shows:
    "a revocation that stalls before its commit keeps the next one waiting, so that a reader of the log misses neither",
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS }, async (scene) => {
      const [first = "", second = ""] = await insertLinks(scene.database.sql, "link", 2);
      const { second: did, inOrder, statuses } = await overtakeInTheLog(scene, [first, second]);
      report.check("the second revocation, while the first stalls", did, "waits for the lock");
      report.check("the first has the smaller number", inOrder, true);
      report.check("both links, once the log was read", statuses, [410, 410]);
    });
  },
};

/** The function that revokes, without its lock. */
async function unlockRevocation(sql: Sql): Promise<void> {
  const [row] = await sql`SELECT pg_get_functiondef('revoke_links'::regproc) AS source`;
  const source = String(row?.source);
  const unlocked = source.replace(/PERFORM pg_advisory_xact_lock\(\d+\);/, "");
  if (unlocked === source) throw new Error("revoke_links has no lock to be taken out");
  await sql.unsafe(unlocked);
}

export const nc4: EvidenceCase = {
  id: "NC4",
  shows:
    "without the lock the second commits first, the reader passes the first by, and its link lives on until its TTL",
  control: true,
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS }, async (scene) => {
      const [first = "", second = ""] = await insertLinks(scene.database.sql, "link", 2);
      await unlockRevocation(scene.database.sql);
      const loadedAt = performance.now();
      const { second: did, inOrder, statuses } = await overtakeInTheLog(scene, [first, second]);
      report.check("the second revocation, while the first stalls", did, "commits first");
      report.check("the first has the smaller number", inOrder, true);
      report.check("both links, once the log was read", statuses, [302, 410]);
      const servedMs = await scene.redirect.followUntilGone(first, loadedAt);
      report.check("the first is followed until its TTL at the longest", servedMs < TTL_MS, true);
      report.figure(`old target served for ${servedMs.toFixed(0)} ms after it was read (TTL ${TTL_MS} ms)`);
    });
  },
};
