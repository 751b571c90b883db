import type { Database } from "@linkfence/db";
import type { Change, Page } from "./cursor.ts";

/**
 * Rows in one read at the most. Two thousand rows are a batch revocation of the largest size twice over, and about
 * 100 kB on the wire.
 */
export const PAGE_LIMIT = 2000;

/**
 * What an instance says of itself. `count` rises with each renewal that it sends, so that no two are ever taken for one,
 * also where a crash of the server loses some. One that is `lasting` is on the server's disk when it is answered.
 */
export type Renewal = { count: number; lasting: boolean; appliedSeq: number; epoch: string };

export type SyncRequest = {
  instance: string;
  /** See `readFrom`. */
  from: number | null;
  /** Present: record how far the instance has come. */
  renewal: Renewal | null;
};

/** `registered` is false when the instance's row is gone: whatever it cached was fenced without it. */
export type SyncAnswer = { registered: boolean; page: Page };

type SyncRow = {
  registered: boolean;
  epoch: string;
  head: number;
  /** Null for none. */
  seqs: number[] | null;
  codes: string[] | null;
  versions: number[] | null;
};

/**
 * One catch-up read, which is one statement and one transaction: it resolves after its commit.
 * @throws the database's error, or `DeadlineExceeded`; 55000 on a standby, which can renew nobody
 */
export async function readChanges(database: Database, request: SyncRequest): Promise<SyncAnswer> {
  const { instance, from, renewal } = request;
  const [row] = await database.run<SyncRow[]>(
    (sql) => sql<SyncRow[]>`
      SELECT registered, epoch, head, seqs, codes, versions
        FROM sync_instance(${instance}::uuid, ${from}::bigint, ${PAGE_LIMIT}, ${renewal?.count ?? null}::bigint,
                           ${renewal?.lasting ?? false}, ${renewal?.appliedSeq ?? 0}::bigint, ${renewal?.epoch ?? ""})`,
  );
  if (!row) throw new Error("sync_instance answered no row");
  const { registered, epoch, head } = row;
  return { registered, page: { epoch, head, changes: zipChanges(row), limit: PAGE_LIMIT } };
}

function zipChanges({ seqs, codes, versions }: SyncRow): Change[] {
  return (seqs ?? []).map((seq, index) => {
    const code = codes?.[index];
    const version = versions?.[index];
    if (code === undefined || version === undefined) throw new Error("sync_instance answered arrays of unequal length");
    return { seq, code, version };
  });
}
