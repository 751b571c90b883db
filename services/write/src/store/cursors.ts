import { createHmac, timingSafeEqual } from "node:crypto";
import { Problem } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { type AnyListing, formatCursor, type Position, parseCursor, signedText } from "../domain/cursor.ts";

/** More than a rotation needs; older ones no longer verify. */
const KEYS_READ = 10;

export type Cursors = {
  issue(position: Position, listing: AnyListing): string;
  /** Where the page starts. Throws a Problem `invalid-cursor` for everything that `issue` did not make for this listing. */
  read(text: string, listing: AnyListing): Position;
};

type CursorKey = { id: number; secret: Uint8Array };

/**
 * Reads the keys of cursors, which live in the database: all instances have the same ones, a restart keeps them, and a
 * key that is added or deleted counts from the next call on.
 * @throws Problem 503 where there is no key
 */
export async function readCursors(db: Database): Promise<Cursors> {
  const keys = await db.read(
    (sql) => sql<CursorKey[]>`SELECT id, secret FROM cursor_key ORDER BY id DESC LIMIT ${KEYS_READ}`,
  );
  const [newest] = keys;
  if (!newest)
    throw new Problem("unavailable", "the database has no key for cursors: INSERT INTO cursor_key DEFAULT VALUES");
  return {
    issue: (position, listing) =>
      formatCursor({ keyId: newest.id, position, signature: sign(newest, position, listing) }),
    read(text, listing) {
      const cursor = parseCursor(text);
      const key = keys.find(({ id }) => id === cursor?.keyId);
      // Both have 43 characters, and all of them are compared: the time tells nothing about where they differ.
      if (cursor && key && equal(sign(key, cursor.position, listing), cursor.signature)) return cursor.position;
      throw invalidCursor();
    },
  };
}

/** One page of rows that were read newest first, one more than it holds where there is one; `end` is null at the last. */
export function cutPage<T>(rows: readonly T[], limit: number): { items: T[]; end: T | null } {
  const items = rows.slice(0, limit);
  return { items, end: rows.length > limit ? (items.at(-1) ?? null) : null };
}

function sign({ id, secret }: CursorKey, position: Position, listing: AnyListing): string {
  return createHmac("sha256", secret)
    .update(signedText(id, position, listing), "utf8")
    .digest("base64url");
}

function equal(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, "latin1"), Buffer.from(b, "latin1"));
}

function invalidCursor(): Problem {
  const detail = "must be a cursor of this listing, unchanged and with the same filters: start again without it";
  return new Problem("invalid-cursor", `the query parameter after ${detail}`, [
    { field: "after", rule: "cursor", detail },
  ]);
}
