import { LinkPage, ListLinksQuery, Problem } from "@linkfence/contracts";
import { decideListing } from "../domain/list-query.ts";
import type { LinkListing } from "../store/listing.ts";
import { type Call, call } from "./call.ts";
import { PAGE_FIELDS, replyWithPage } from "./page-reply.ts";
import type { PresentLink } from "./presentation.ts";

/** The listing of an owner's links, a page at a time. */
export function listCall(listing: LinkListing, presentLink: PresentLink): Call {
  return call({
    scope: "links:read",
    query: ListLinksQuery,
    describe: {
      operationId: "listLinks",
      summary: "List your links, newest first",
      group: "Links",
      answers: {
        200: {
          description: "One page of links",
          schema: LinkPage,
          headers: PAGE_FIELDS,
        },
      },
      problems: ["invalid-cursor"],
    },
    async handle(_request, { owner }, { after = null, ...parameters }) {
      const decision = decideListing(parameters);
      if (!decision.ok) throw new Problem("invalid-request", parameterSentence(decision.fault), [decision.fault]);
      const { limit, filter } = decision;
      const { items, next } = await listing.list({ owner, filter, limit, after });
      const body: LinkPage = { items: items.map(presentLink), next };
      return replyWithPage("/v1/links", parameters, body);
    },
  });
}

function parameterSentence({ field, detail }: { field: string; detail: string }): string {
  return `the query parameter ${field} ${detail}`;
}
