// Redirect processes that nobody speaks to, and what each of them answers while a link is revoked.
import { setTimeout as pause } from "node:timers/promises";
import { createTestDatabase, mapConcurrently, type TestDatabase, waitFor } from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { revokeLinks } from "./link-rows.ts";
import { type RedirectProcess, startRedirect, type Visit } from "./redirect-process.ts";

/** Every window is far shorter; this only ends a broken run. */
const WATCH_MS = 60_000;
/** A few hundred requests a second to each process; where nothing is waited for they would take a processor each. */
const SAMPLE_EVERY_MS = 2;
/** Links followed at once to bring them into memory. */
const WIDTH = 8;

export type Fleet = { redirects: readonly RedirectProcess[]; sql: TestDatabase["sql"] };

/** What one process answered while a link was revoked. Times in ms. */
export type Window = {
  /** From before the revocation was sent, so with its commit, to the arrival of the first 410. */
  goneMs: number;
  /** Longest time between two requests of the watcher, who sees nothing between them. */
  samplingMs: number;
  /** Of the redirects that were asked for after the commit: when the last was, and the age of the oldest entry used. */
  lastOldMs: number;
  oldestMs: number;
  /** Answers that are neither a redirect nor 410. */
  others: number[];
};

/** Runs a scenario on `count` redirect processes and a database of their own. Where they listen, they are heard to. */
export function withFleet(count: number, env: Record<string, string>, scenario: (fleet: Fleet) => Promise<void>) {
  return closingAfterwards(async (later) => {
    const database = await createTestDatabase("main");
    later(database.drop);
    const redirects: RedirectProcess[] = [];
    later(() => Promise.all(redirects.map((redirect) => redirect.stop())));
    for (let started = 0; started < count; started += 1) {
      redirects.push(await startRedirect(database.url, { DEBUG_ENTRY_AGE: "true", ...env }));
    }
    if (env.LISTEN_ENABLED !== "false") {
      for (const { listening } of redirects) await waitFor("notifications", listening);
    }
    await scenario({ redirects, sql: database.sql });
  });
}

/**
 * Follows each link on every process, so that it is in memory everywhere. A query that a busy machine does not answer within
 * its deadline is 503, and is asked again.
 */
export async function warm({ redirects }: Fleet, codes: readonly string[]): Promise<void> {
  for (const { status } of redirects) {
    const follow = (code: string) =>
      waitFor(`a redirect for ${code}`, async () => {
        const seen = await status(code);
        return seen !== 503 && seen;
      });
    const statuses = await mapConcurrently(codes, WIDTH, follow);
    if (statuses.some((seen) => seen !== 302)) throw new Error("a new link does not lead to its target");
  }
}

/** Revokes one link after the other while each process is asked for it without a break. One window for each process. */
export async function revokeOneByOne({ redirects, sql }: Fleet, codes: readonly string[]): Promise<Window[][]> {
  const windows: Window[][] = [];
  for (const code of codes) windows.push(await revokeWatched(redirects, code, () => revokeLinks(sql, code)));
  return windows;
}

/**
 * Has a link that leads on revoked while each process is asked for it without a break.
 * @param revoke resolves at the commit, or at whatever else makes an end of the link
 */
export async function revokeWatched(
  redirects: readonly RedirectProcess[],
  code: string,
  revoke: () => Promise<unknown>,
): Promise<Window[]> {
  for (const { status } of redirects) await waitFor(`a redirect for ${code}`, async () => (await status(code)) === 302);
  const watches = Promise.all(redirects.map((redirect) => watchUntilGone(redirect, code)));
  watches.catch(() => {}); // told below
  const revokedAt = performance.now();
  await revoke();
  const committedAt = performance.now();
  return (await watches).map((visits) => measure(visits, revokedAt, committedAt));
}

async function watchUntilGone({ visit }: RedirectProcess, code: string): Promise<Visit[]> {
  const visits: Visit[] = [];
  for (const endsAt = performance.now() + WATCH_MS; performance.now() < endsAt; ) {
    const seen = await visit(code);
    visits.push(seen);
    if (seen.status === 410) return visits;
    await pause(SAMPLE_EVERY_MS);
  }
  throw new Error("a revoked link is still followed");
}

function measure(visits: readonly Visit[], revokedAt: number, committedAt: number): Window {
  const last = visits.at(-1);
  const old = visits.filter(({ status, sentAt }) => status === 302 && sentAt > committedAt);
  return {
    goneMs: last ? last.sentAt + last.ms - revokedAt : Number.NaN,
    samplingMs: max(visits.map(({ sentAt }, index) => sentAt - (visits[index - 1]?.sentAt ?? sentAt))),
    lastOldMs: max(old.map(({ sentAt }) => sentAt - committedAt)),
    oldestMs: max(old.map(entryAgeMs)),
    others: visits.map(({ status }) => status).filter((status) => status !== 302 && status !== 410),
  };
}

/** When the last request after the commit was sent that got the old target, in ms; 0 where none did. */
export function lastOldMs(windows: readonly Window[]): number {
  return max(windows.map((window) => window.lastOldMs));
}

/** Age of the entry that a redirect rests on. */
export function entryAgeMs({ headers }: Visit): number {
  return Number(headers["x-entry-age-ms"]);
}

/** 0 for none. */
export function max(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}

/** Median, 99th percentile and maximum, in words. */
export function spread(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.ceil(sorted.length * part) - 1]?.toFixed(0) ?? "no";
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}
