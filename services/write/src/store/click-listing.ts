import type { ClickPage, ClickRecord } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { clickOfPlace, placeOfClick } from "../domain/cursor.ts";
import type { Statistics } from "../statistics.ts";
import { cutPage, readCursors } from "./cursors.ts";

export type ClickListRequest = { owner: string; code: string; limit: number; after: string | null };

export type ClickListing = ReturnType<typeof createClickListing>;

/** Creates the listing of clicks: they are click-ingest's, and the cursors this service's. */
export function createClickListing(db: Database, statistics: Pick<Statistics, "readClicks">) {
  /**
   * Reads one page of a code's clicks, newest first. Rejects with a Problem `invalid-cursor` or `statistics-unavailable`, or
   * with the database's error.
   */
  async function list({ owner, code, limit, after }: ClickListRequest): Promise<ClickPage> {
    const cursors = await readCursors(db);
    const listing = { clicksOf: code, owner };
    const start = after === null ? null : cursors.read(after, listing);
    const before = start && clickOfPlace(start);
    const { items, end } = cutPage<ClickRecord>(await statistics.readClicks(code, { limit: limit + 1, before }), limit);
    return { items, next: end && cursors.issue(placeOfClick(end), listing) };
  }

  return { list };
}
