// What real processes answer around the instant at which a link that they have in memory ends.
import { setTimeout as passed } from "node:timers/promises";
import { insertLinks, targetOf } from "./link-rows.ts";
import type { RedirectProcess } from "./redirect-process.ts";
import type { Report } from "./report.ts";
import { type Fleet, warm } from "./revocation-windows.ts";

const EVERY_MS = 20;

export type ExpiryOptions = {
  /** Code of the link. */
  code: string;
  /** How long it lives; far shorter than an entry. */
  lifeMs: number;
  /** By how much the clock that the database goes by is ahead of the machine's. */
  aheadMs?: number;
  /** What happens to the processes once they have the link in memory. */
  meanwhile?: () => Promise<unknown>;
};

/** An expiry, in ms since 1970 by this machine's clock. */
type Expiry = { code: string; at: number };

/** Follows a link over its end on each process, at a fixed pace, and judges what was answered. Returns in words how exact it was. */
export async function followExpiry(report: Report, fleet: Fleet, options: ExpiryOptions): Promise<string> {
  const { code, lifeMs } = options;
  // A process' first query opens its connection, which takes its time.
  await warm(fleet, await insertLinks(fleet.sql, `before-${code}`, 1));
  const askedAt = performance.now();
  const expiry = await insertExpiring(fleet.sql, options);
  await warm(fleet, [code]);
  // The remaining life counts from before the question was sent: it may end early by that query, never late.
  const earlyMs = performance.now() - askedAt;
  const loads = () => Promise.all(fleet.redirects.map(({ metric }) => metric("linkfence_loads_total")));
  const before = await loads();
  await options.meanwhile?.();
  const seen = (await Promise.all(fleet.redirects.map((redirect) => pollExpiry(redirect, expiry, lifeMs)))).flat();
  const followed = seen.filter(({ status }) => status === 302);
  const gone = seen.filter(({ status }) => status === 410);
  report.check("answers other than 302 and 410", seen.length - followed.length - gone.length, 0);
  report.check("302 to requests sent at the instant or later", followed.filter((v) => v.sentMs >= 0).length, 0);
  const early = gone.filter((v) => v.cameMs < -earlyMs).length;
  report.check("410 that came earlier than that query accounts for", early, 0);
  report.check("reads of the link meanwhile", await loads(), before);
  const last = Math.max(...followed.map(({ sentMs }) => sentMs));
  const first = Math.min(...gone.map(({ cameMs }) => cameMs));
  return `last 302 asked for at ${last.toFixed(0)} ms, first 410 at ${first.toFixed(0)} ms from the instant`;
}

/** Stores a link that ends. */
export async function insertExpiring(sql: Fleet["sql"], { code, lifeMs, aheadMs = 0 }: ExpiryOptions): Promise<Expiry> {
  const [row] = await sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at)
    VALUES (${code}, ${targetOf(code)}, 'ann', 'ALIAS', 'k',
            clock_timestamp() + ${`${lifeMs + aheadMs} milliseconds`}::interval)
    RETURNING (extract(epoch FROM expires_at) * 1000)::float8 AS at`;
  return { code, at: (row?.at as number) - aheadMs };
}

/** Asks at a fixed pace until the link has been over for half as long as it lived. Times count from the instant. */
async function pollExpiry({ visit }: RedirectProcess, { code, at }: Expiry, lifeMs: number) {
  const seen: { status: number; sentMs: number; cameMs: number }[] = [];
  for (let sentMs = Date.now() - at; sentMs < lifeMs / 2; sentMs = Date.now() - at) {
    const { status } = await visit(code);
    seen.push({ status, sentMs, cameMs: Date.now() - at });
    await passed(EVERY_MS);
  }
  return seen;
}
