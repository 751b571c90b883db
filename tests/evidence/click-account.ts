// Both ends of the way of a click: what a redirect process says became of each, and what the database holds.
import { type RunningService, type TestDatabase, waitFor } from "@linkfence/testkit";

export type ClickAccount = {
  accepted: number;
  recovered: number;
  inserted: number;
  duplicate: number;
  refused: number;
  /** By reason. */
  dropped: Record<string, number>;
  inFlight: number;
};

/** Reads the account of a redirect process from one page, so that all of it is of one moment. */
export async function readClickAccount(redirect: Pick<RunningService, "opsUrl">): Promise<ClickAccount> {
  const page = await (await fetch(`${redirect.opsUrl}/metrics`)).text();
  const lines = page.split("\n");
  const read = (sample: string) => {
    const name = `linkfence_clicks_${sample} `;
    const line = lines.find((text) => text.startsWith(name));
    if (!line) throw new Error(`no metric ${name}`);
    return Number(line.slice(name.length));
  };
  const drops = page.matchAll(/^linkfence_clicks_dropped_total\{reason="(.+)"\} (\d+)$/gm);
  return {
    accepted: read("accepted_total"),
    recovered: read("recovered_total"),
    inserted: read("inserted_total"),
    duplicate: read("duplicate_total"),
    refused: read("refused_total"),
    dropped: Object.fromEntries([...drops].map(([, reason, count]) => [reason ?? "", Number(count)])),
    inFlight: read("in_flight"),
  };
}

/** Waits until nothing is in flight any more, and returns the account of that moment. Throws after a minute. */
export function settleClickAccount(redirect: Pick<RunningService, "opsUrl">): Promise<ClickAccount> {
  return waitFor("clicks to be stored or dropped", async () => {
    const account = await readClickAccount(redirect);
    return account.inFlight === 0 ? account : undefined;
  });
}

/** Counts the clicks of a statistics database, and their distinct ids. */
export async function countClicks(stats: Pick<TestDatabase, "sql">): Promise<{ rows: number; ids: number }> {
  const [row] = await stats.sql<{ rows: number; ids: number }[]>`
    SELECT count(*)::int AS rows, count(DISTINCT click_id)::int AS ids FROM click`;
  return row ?? { rows: -1, ids: -1 };
}
