import type { ExportJob } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { numberOfPlace, placeOfExport } from "../domain/cursor.ts";
import type { Exports } from "../exports.ts";
import { cutPage, readCursors } from "./cursors.ts";

export type ExportListing = ReturnType<typeof createExportListing>;

/** Creates the listing of exports: they are click-ingest's, and the cursors this service's. */
export function createExportListing(db: Database, exports: Pick<Exports, "list">) {
  /**
   * Reads one page of an owner's exports, newest first. Rejects with a Problem `invalid-cursor` or `exports-unavailable`, or
   * with the database's error.
   */
  async function list({ owner, limit, after }: { owner: string; limit: number; after: string | null }) {
    const cursors = await readCursors(db);
    const listing = { exportsOf: owner };
    const before = after === null ? null : numberOfPlace(cursors.read(after, listing));
    const { items, end } = cutPage<ExportJob>(await exports.list(owner, limit + 1, before), limit);
    return { items, next: end && cursors.issue(placeOfExport(end), listing) };
  }

  return { list };
}
