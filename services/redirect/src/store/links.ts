import { arrayLiteral, classifyError, type Database } from "@linkfence/db";
import type { LinkRow } from "../domain/entry.ts";

type Row = {
  /** The code that was asked for, as the server heard it; the rest is null where there is no such link. */
  asked: string;
  /** The server replays what another one wrote, and may lag behind it. */
  standby: boolean;
  state: "ACTIVE" | "REVOKED" | null;
  target: string | null;
  version: number;
  remaining_ms: number | null;
  owner: string;
};

/** What a header field can carry as it is (RFC 9110 section 5.5); the write service stores nothing else. */
const SENDABLE = /^[\x20-\x7e]+$/;

/** A row that did not come through the write service. Sending it would fail, and end the process with it. */
export class UnsendableTarget extends Error {
  constructor(code: string) {
    super(`the stored target of ${code} holds characters that no Location field can carry`);
    this.name = "UnsendableTarget";
  }
}

/**
 * An answer to another question. The driver has once mixed answers up, under overload (packages/db/patches), and no visitor may
 * be led to somebody else's target, whatever lies between here and the row.
 */
export class ForeignAnswer extends Error {
  constructor() {
    super("the database's answer is that of another look-up");
    this.name = "ForeignAnswer";
  }
}

/** An answer of a standby, which may not have heard yet of a revocation that was confirmed long ago. */
export class StandbyAnswer extends Error {
  constructor() {
    super("a standby answered: DATABASE_URL has to lead to the server that is written to");
    this.name = "StandbyAnswer";
  }
}

/** A row, null where there is none, or what is wrong with that one row. */
export type Found = LinkRow | null | UnsendableTarget;

/**
 * Creates what reads links by their codes, which may be named more than once, in one statement and within `leftMs`.
 * Resolves with one answer each, in their order. Rejects with the database's error, with `ForeignAnswer` or
 * `StandbyAnswer`.
 *
 * The codes stand beside their rows, one by one, so that each answer names its question. LIMIT is for the planner: it looks
 * each of them up by its key, however many it takes them to be, and does not read the table.
 */
export function createLinkReader(database: Database) {
  return async (codes: readonly string[], leftMs?: number): Promise<Found[]> => {
    const literal = arrayLiteral(codes);
    const rows = await database.read<Row[]>(
      (sql) => sql<Row[]>`
        SELECT q.asked, s.standby, l.state, l.target, l.version, l.remaining_ms, l.owner
          FROM (SELECT pg_is_in_recovery() AS standby) s, unnest(${literal}::text[]) AS q (asked)
          LEFT JOIN LATERAL (SELECT * FROM redirect_link WHERE code = q.asked LIMIT 1) l ON true`,
      leftMs,
    );
    if (rows.length !== codes.length) throw new ForeignAnswer();
    // The order of the questions is no promise of the server's, though it is kept as a rule.
    if (rows.every(({ asked }, place) => asked === codes[place])) return rows.map(judge);
    const byCode = new Map(rows.map((row) => [row.asked, row]));
    return codes.map((code) => judge(byCode.get(code)));
  };
}

function judge(row: Row | undefined): Found {
  if (row === undefined) throw new ForeignAnswer();
  if (row.standby) throw new StandbyAnswer();
  if (row.state === null) return null;
  if (row.target !== null && !SENDABLE.test(row.target)) return new UnsendableTarget(row.asked);
  const { target, state, version, remaining_ms: remainingMs, owner } = row;
  return { target, state, version, remainingMs, owner };
}

/** Says whether a statement's error may be that of one of its rows: a value that cannot be read, not a database that is away. */
export function mayBeOfOneRow(error: unknown): boolean {
  return classifyError(error) === "fatal" && !(error instanceof ForeignAnswer) && !(error instanceof StandbyAnswer);
}
