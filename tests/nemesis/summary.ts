// What a run says of itself.
import type { Fault } from "./faults.ts";
import type { Seen } from "./run.ts";

/** One line for each fault, as it begins. */
export function tellFault({ place, kind, lastsMs }: Fault, atMs: number): string {
  const lasts = lastsMs > 0 ? ` for ${seconds(lastsMs)}` : "";
  return `${seconds(atMs).padStart(8)}  ${place}: ${kind}${lasts}`;
}

/** One line in between. */
export function tellProgress(seen: Seen): string {
  const { ms, revocations, confirmed, failed } = seen;
  const requests = [...seen.statuses.values()].reduce((sum, count) => sum + count, 0);
  const many = confirmed.acknowledged + confirmed.ttl;
  return `${seconds(ms).padStart(8)}  ${revocations} revocations, ${many} confirmed, ${requests} requests, ${failed} failed`;
}

/** All that it saw, and what it came to. */
export function summarise(seen: Seen, { seed, redirects }: { seed: number; redirects: number }): string[] {
  const { statuses, confirmed, times, calls } = seen;
  const byName = ([one]: [string, number], [other]: [string, number]) => (one < other ? -1 : 1);
  const named = [...statuses].map(([status, count]): [string, number] => [
    status === 0 ? "refused or cut" : String(status),
    count,
  ]);
  const faults = [...seen.faults].sort(byName);
  const total = faults.reduce((sum, [, count]) => sum + count, 0);
  return [
    `seed ${seed}, ${(seen.ms / 60_000).toFixed(1)} minutes, ${redirects} redirect processes${seen.brokenOff ? ", broken off" : ""}`,
    `faults: ${total}`,
    ...faults.map(([kind, count]) => `${String(count).padStart(8)} ${kind}`),
    `links revoked: ${seen.revocations}; confirmed by acknowledgements ${confirmed.acknowledged}, by time ${confirmed.ttl}`,
    `answers that did not confirm yet: ${seen.unconfirmed}`,
    `calls of the admin API: ${calls.calls}, of which unavailable ${calls.unavailable}, refused or cut ${calls.cut}`,
    `requests: ${named
      .sort(byName)
      .map(([what, count]) => `${count} ${what}`)
      .join(", ")}`,
    `from the call to the confirmation: ${spreadOf(times)}`,
    ...seen.violations.map(({ rule, code, what }) => `FAIL ${rule}: ${code} ${what}`),
    `${seen.passed} passed, ${seen.failed} failed`,
  ];
}

/** Median and worst of times in ms. */
export function spreadOf(times: readonly number[]): string {
  const sorted = [...times].sort((one, other) => one - other);
  const [median, worst] = [sorted[sorted.length >> 1], sorted.at(-1)];
  if (median === undefined || worst === undefined) return "none";
  return `median ${median.toFixed(0)} ms, worst ${worst.toFixed(0)} ms`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
