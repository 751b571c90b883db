import type { Database } from "@linkfence/db";
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

/**
 * Reads one link by its code; null when there is none. One query, under the pool's deadline.
 * Rejects with the database's error, with `UnsendableTarget`, `ForeignAnswer` or `StandbyAnswer`.
 *
 * The code is named twice: the planner keeps what asks for recovery as it stands, and looks up no index by a column of it.
 */
export function createLinkReader(database: Database): (code: string) => Promise<LinkRow | null> {
  return async (code) => {
    const [row] = await database.read<Row[]>(
      (sql) => sql<Row[]>`
        SELECT q.asked, q.standby, l.state, l.target, l.version, l.remaining_ms, l.owner
          FROM (SELECT ${code}::text AS asked, pg_is_in_recovery() AS standby) q
          LEFT JOIN (SELECT * FROM redirect_link WHERE code = ${code}::text) l ON true`,
    );
    if (row?.asked !== code) throw new ForeignAnswer();
    if (row.standby) throw new StandbyAnswer();
    if (row.state === null) return null;
    if (row.target !== null && !SENDABLE.test(row.target)) throw new UnsendableTarget(code);
    const { target, state, version, remaining_ms: remainingMs, owner } = row;
    return { target, state, version, remainingMs, owner };
  };
}
