// What the age of an entry is for: the last bound, where the log says nothing of a change. Each link here is revoked
// behind the log's back.
import { setTimeout as passed } from "node:timers/promises";
import type { TestDatabase } from "@linkfence/testkit";
import type { Entry } from "../../services/redirect/src/domain/entry.ts";
import { insertLinks } from "./link-rows.ts";
import { type Scene, type Weakening, withRedirectInProcess } from "./redirect-in-process.ts";
import type { EvidenceCase } from "./report.ts";

/** Long beside a read on a busy machine, which has to end within it. */
const TTL_MS = 1000;
/** A read that nobody holds back takes milliseconds. */
const UNHELD_MS = 10_000;

async function revokeUnlogged(sql: TestDatabase["sql"], code: string): Promise<void> {
  await sql`UPDATE link SET state = 'REVOKED', version = version + 1, revoked_at = now(), revoked_by = 'k'
    WHERE code = ${code}`;
}

/** The row is read, the link is revoked, and the answer arrives a TTL later. */
async function holdBeyondTtl({ redirect, database }: Scene) {
  const [code = ""] = await insertLinks(database.sql, "link", 1);
  const { rowRead, release } = redirect.holdNextRead();
  const early = redirect.get(code);
  await rowRead;
  await revokeUnlogged(database.sql, code);
  await passed(TTL_MS);
  release();
  const { status } = await early;
  const next = await redirect.get(code);
  return { early: status, next: next.status, loads: redirect.lookup.stats().loads };
}

export const f1: EvidenceCase = {
  id: "F1",
  shows: "an answer that took longer than a TTL to arrive is too old to be used, and the link is read again",
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS }, async (scene) => {
      const seen = await holdBeyondTtl(scene);
      report.check("request that waited, next request, loads", Object.values(seen), [410, 410, 2]);
    });
    await withRedirectInProcess({ ttlMs: TTL_MS }, async ({ redirect, database }) => {
      const [code = ""] = await insertLinks(database.sql, "link", 1);
      const { rowRead, release } = redirect.holdNextRead();
      const early = redirect.get(code);
      await rowRead;
      await passed(TTL_MS);
      // Were it to share the read under way, it would wait with it.
      const late = await redirect.get(code, { timeoutMs: UNHELD_MS });
      release();
      await early;
      report.check("a request that arrives a TTL after that read began", late.status, 302);
      report.check("requests that shared a read", redirect.lookup.stats().joined, 0);
    });
  },
};

const stampedOnArrival: Weakening = {
  cache: (real) => ({ ...real, put: (entry: Entry) => real.put(stamp(entry)) }),
  loader: (real) => ({
    ...real,
    ask: (code, told) => real.ask(code, (entry, error) => told(entry && stamp(entry), error)),
  }),
};

function stamp(entry: Entry): Entry {
  return { ...entry, loadedAt: { mono: performance.now(), wall: Date.now() } };
}

export const f1c: EvidenceCase = {
  id: "F1c",
  shows:
    "when its age counts from its arrival, it is given to the next request as well, a TTL after the link was revoked",
  control: true,
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS, weakening: stampedOnArrival }, async (scene) => {
      const seen = await holdBeyondTtl(scene);
      report.check("request that waited, next request, loads", Object.values(seen), [302, 302, 1]);
    });
  },
};

/** The link is in memory and is revoked; for a TTL nobody asks for it. */
async function leaveForTtl({ redirect, database }: Scene) {
  const [code = ""] = await insertLinks(database.sql, "link", 1);
  const first = await redirect.get(code);
  await revokeUnlogged(database.sql, code);
  await passed(TTL_MS);
  await redirect.caughtUp();
  const later = await redirect.get(code);
  return { first: first.status, later: later.status, loads: redirect.lookup.stats().loads };
}

export const f2: EvidenceCase = {
  id: "F2",
  shows: "an entry of the age of the TTL is not answered from memory, although the log was read to its end just now",
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS }, async (scene) => {
      const seen = await leaveForTtl(scene);
      report.check("first request, request after a TTL, loads", Object.values(seen), [302, 410, 2]);
    });
  },
};

const ageless: Weakening = {
  cache: (real) => ({
    ...real,
    get(code: string) {
      const entry = real.get(code);
      return entry && stamp(entry);
    },
  }),
};

export const f2c: EvidenceCase = {
  id: "F2c",
  shows: "without its age an entry is answered for as long as the log is read",
  control: true,
  async run(report) {
    await withRedirectInProcess({ ttlMs: TTL_MS, weakening: ageless }, async (scene) => {
      const seen = await leaveForTtl(scene);
      report.check("first request, request after a TTL, loads", Object.values(seen), [302, 302, 1]);
    });
  },
};
