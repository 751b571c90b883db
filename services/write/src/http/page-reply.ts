import type { Reply } from "./call.ts";

/** What an answer with a page has in its header. */
export const PAGE_FIELDS = { Link: 'The next page, as a web link with `rel="next"`' };

/** @param parameters those of the query, less the cursor: the next page has the same */
export function replyWithPage(path: string, parameters: object, body: { next: string | null }): Reply {
  return body.next === null
    ? { status: 200, body }
    : { status: 200, body, headers: { Link: nextLink(path, parameters, body.next) } };
}

/** A web link (RFC 8288 section 3) relative to this call: nothing that the request says of its host has a part in it. */
function nextLink(path: string, parameters: object, after: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...parameters, after })) query.set(name, String(value));
  return `<${path}?${query}>; rel="next"`;
}
