// The registry of redirect processes, as the write service sees and keeps it.
import { arrayLiteral, type Database } from "@linkfence/db";
import type { Sight } from "../domain/registry.ts";

type Row = {
  epoch: string;
  settled: boolean;
  head: string;
  ids: string[];
  addresses: string[];
  ttls: number[];
  follow: boolean[];
  epochs: string[];
  applied: string[];
  renewals: string[];
};

export type RegistryStore = ReturnType<typeof createRegistryStore>;

/**
 * Creates it. All reject with the database's error.
 * @param now ms of a clock that never steps
 */
export function createRegistryStore(db: Database, now: () => number) {
  /** One look, in one statement and so in one snapshot. */
  async function look(): Promise<Sight> {
    const sentAt = now();
    const [row] = await db.run(
      (sql) => sql<Row[]>`
        SELECT epoch, settled, head, ids, addresses, ttls, follow, epochs, applied, renewals FROM watch_registry()`,
    );
    if (!row) throw new Error("watch_registry answered no row");
    const instances = row.ids.map((id, i) => ({
      id,
      address: row.addresses[i] ?? "",
      ttlMs: row.ttls[i] ?? 0,
      followsFeed: row.follow[i] ?? false,
      epoch: row.epochs[i] ?? "",
      appliedSeq: Number(row.applied[i]),
      renewals: Number(row.renewals[i]),
    }));
    const { epoch, settled, head } = row;
    return { sentAt, receivedAt: now(), epoch, settled, head: Number(head), instances };
  }

  /** Marks a history as settled. Returns false where the database goes by another one. */
  async function settle(epoch: string): Promise<boolean> {
    const [row] = await db.run((sql) => sql<{ current: boolean }[]>`SELECT settle_epoch(${epoch}) AS current`);
    return row?.current ?? false;
  }

  /** Removes rows that did not renew since they were judged. Returns the ids of those that are gone. */
  async function remove(dead: readonly { id: string; renewals: number }[]): Promise<string[]> {
    const ids = arrayLiteral(dead.map(({ id }) => id));
    const renewals = arrayLiteral(dead.map((row) => String(row.renewals)));
    const [row] = await db.run(
      (sql) => sql<{ gone: string[] }[]>`SELECT remove_instances(${ids}::uuid[], ${renewals}::bigint[]) AS gone`,
    );
    return row?.gone ?? [];
  }

  /** Removes up to `limit` of the oldest changes that are older than `ageMs` by the database's clock. Returns how many. */
  async function trim(ageMs: number, limit: number): Promise<number> {
    const [row] = await db.run(
      (sql) => sql<{ gone: number }[]>`SELECT trim_changes(make_interval(secs => ${ageMs / 1000}), ${limit}) AS gone`,
    );
    return row?.gone ?? 0;
  }

  return { look, settle, remove, trim };
}
