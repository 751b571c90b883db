import { type LinkPage, Problem } from "@linkfence/contracts";
import { decideListing, LIST_PARAMETERS, type ListParameters } from "../domain/list-query.ts";
import type { LinkListing } from "../store/listing.ts";
import type { PresentLink } from "./presentation.ts";
import { readQuery } from "./query.ts";
import type { Call } from "./routes.ts";

/** The listing of an owner's links, a page at a time. */
export function listCall(listing: LinkListing, presentLink: PresentLink): Call {
  return {
    scope: "links:read",
    async handle(request, { owner }) {
      const { after = null, ...parameters } = readQuery(request, [...LIST_PARAMETERS, "after"]);
      const decision = decideListing(parameters);
      if (!decision.ok) throw new Problem("invalid-request", parameterSentence(decision.fault), [decision.fault]);
      const { limit, filter } = decision;
      const { items, next } = await listing.list({ owner, filter, limit, after });
      const body: LinkPage = { items: items.map(presentLink), next };
      return next === null
        ? { status: 200, body }
        : { status: 200, body, headers: { Link: nextLink(parameters, next) } };
    },
  };
}

function parameterSentence({ field, detail }: { field: string; detail: string }): string {
  return `the query parameter ${field} ${detail}`;
}

/** A web link (RFC 8288 section 3) relative to this call: nothing that the request says of its host has a part in it. */
function nextLink(parameters: ListParameters, after: string): string {
  return `</v1/links?${new URLSearchParams({ ...parameters, after })}>; rel="next"`;
}
