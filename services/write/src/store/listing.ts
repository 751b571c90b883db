import type { Database } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { Listing, Position } from "../domain/cursor.ts";
import { cutPage, readCursors } from "./cursors.ts";
import type { StoredLink } from "./link-rows.ts";
import { type PageRow, selectPage } from "./page-rows.ts";

export type ListRequest = Listing & {
  /** Links at the most, from 1 on. */
  limit: number;
  /** The cursor of the page before, if any. */
  after: string | null;
};

/** `next` is null at the end. A page may have fewer links than asked for, even none, while `next` is not null. */
export type StoredPage = { items: StoredLink[]; next: string | null };

export type LinkListing = ReturnType<typeof createLinkListing>;

/** Creates the listing of links. */
export function createLinkListing(db: Database, counts: Pick<Counts, "listingsCut">) {
  /** Reads one page in one statement. Rejects with a Problem `invalid-cursor`, or with the database's error. */
  async function list({ owner, filter, limit, after }: ListRequest): Promise<StoredPage> {
    const cursors = await readCursors(db);
    const listing = { owner, filter };
    const start = after === null ? null : cursors.read(after, listing);
    const rows = await db.read((sql) => sql<PageRow[]>`${selectPage(sql, { ...listing, limit, after: start })}`);
    const links = rows.flatMap(({ edgeAt: _at, edgeCode: _code, ...link }) => (isLink(link) ? [link] : []));
    const { items, end: last } = cutPage(links, limit);
    const edge = edgeOf(rows);
    if (edge) counts.listingsCut += 1;
    const end = last ?? edge;
    return { items, next: end && cursors.issue({ createdAt: end.createdAt, code: end.code }, listing) };
  }

  return { list };
}

function isLink(link: StoredLink | { [K in keyof StoredLink]: null }): link is StoredLink {
  return link.code !== null;
}

/** Where the scan was ended by its bound, or null. */
function edgeOf([first]: readonly PageRow[]): Position | null {
  const { edgeAt = null, edgeCode = null } = first ?? {};
  return edgeAt === null || edgeCode === null ? null : { createdAt: edgeAt, code: edgeCode };
}
