// A cursor says where in a listing the next page starts. It is signed together with the listing that it belongs to:
// nobody can make one up, or use it for another owner or another filter. Every character of it is signed or a signature.
import type { ListFilter } from "./list-query.ts";

/** The last link of a page: its creation as UTC text with microseconds, and its code, which parts equal times. */
export type Position = { createdAt: string; code: string };

/** Whose links are listed, and which of them. */
export type Listing = { owner: string; filter: ListFilter };

/** A listing of API keys: whose they are. A position in it has a key's id where that of a link has its code. */
export type KeyListing = { keysOf: string };

/** A listing of the clicks of an owner's link. A position in it has a click's id where that of a link has its code. */
export type ClickListing = { clicksOf: string; owner: string };

/** A listing of an owner's exports. A position in it has an export's number where that of a link has its code. */
export type ExportListing = { exportsOf: string };

export type AnyListing = Listing | KeyListing | ClickListing | ExportListing;

/** A cursor taken apart, and not believed yet. */
export type UnverifiedCursor = { keyId: number; position: Position; signature: string };

/** A key's number, a time, a code and an HMAC-SHA256 (RFC 2104) in base64url without padding: 43 characters. */
const CURSOR = /^([1-9]\d{0,9})~(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)~([A-Za-z0-9_-]{3,32})~([A-Za-z0-9_-]{43})$/;

/** Its greatest length, to refuse more unseen: 10, 27, 32 and 43 characters with three between them. */
export const CURSOR_MAX = 115;

export function formatCursor({ keyId, position, signature }: UnverifiedCursor): string {
  return `${keyId}~${position.createdAt}~${position.code}~${signature}`;
}

/** Takes a cursor apart; undefined for a text that cannot be one. */
export function parseCursor(text: string): UnverifiedCursor | undefined {
  const [, keyId, createdAt, code, signature] = (text.length <= CURSOR_MAX && CURSOR.exec(text)) || [];
  if (keyId === undefined || createdAt === undefined || code === undefined || signature === undefined) return undefined;
  return { keyId: Number(keyId), position: { createdAt, code }, signature };
}

/** What is signed. As JSON no two different listings or positions have the same text. */
export function signedText(keyId: number, { createdAt, code }: Position, listing: AnyListing): string {
  if ("keysOf" in listing) return JSON.stringify(["keys", keyId, createdAt, code, listing.keysOf]);
  if ("clicksOf" in listing) return JSON.stringify(["clicks", keyId, createdAt, code, listing.owner, listing.clicksOf]);
  if ("exportsOf" in listing) return JSON.stringify(["exports", keyId, createdAt, code, listing.exportsOf]);
  const { owner, filter } = listing;
  const { state, tag, createdAfter, createdBefore } = filter;
  return JSON.stringify(["listing", keyId, createdAt, code, owner, state, tag, createdAfter, createdBefore]);
}

/** Where a click stands, in the shape of a position: its id without its four hyphens is as long as the longest code. */
export function placeOfClick({ id, clickedAt }: { id: string; clickedAt: string }): Position {
  return { createdAt: clickedAt, code: id.replaceAll("-", "") };
}

/** The other way round: the id of the click at a position that `placeOfClick` made. */
export function clickOfPlace({ code }: Position): string {
  return code.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Where an export stands: its number, as long as the shortest code at least. */
export function placeOfExport({ number, createdAt }: { number: number; createdAt: string }): Position {
  return { createdAt, code: String(number).padStart(3, "0") };
}

/** The other way round: the number of the export at a position that `placeOfExport` made. */
export function numberOfPlace({ code }: Position): number {
  return Number(code);
}
