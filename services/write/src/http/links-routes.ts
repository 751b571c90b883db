import { CreateLinkRequest, isCode, Problem, UpdateLinkRequest } from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import type { Request } from "express";
import { draftLink, type LinkDraft } from "../domain/link.ts";
import { draftChange, refuseImmutable } from "../domain/metadata.ts";
import type { TargetRules } from "../domain/target.ts";
import type { Statistics } from "../statistics.ts";
import type { KeyedRequest } from "../store/idempotency.ts";
import type { KeyedLinkStore } from "../store/keyed-links.ts";
import type { Author } from "../store/link-rows.ts";
import type { LinkStore } from "../store/links.ts";
import type { LinkListing } from "../store/listing.ts";
import { describeRequest, readIdempotencyKey, replayOrRefuse, replyWith } from "./idempotency.ts";
import { readJsonBody, readJsonPatch } from "./json-body.ts";
import { listCall } from "./list-call.ts";
import { type PresentLink, presentRevocation } from "./presentation.ts";
import { readQuery } from "./query.ts";
import { NOT_CONFIRMED, readWait } from "./revocation.ts";
import type { Reply, Routes } from "./routes.ts";

/** A target of full size with a title, tags and a note has about 21 KB. */
export const SINGLE_BODY_LIMIT = 32_768;

export type LinkRouteDeps = {
  links: LinkStore;
  listing: LinkListing;
  keyedLinks: KeyedLinkStore;
  statistics: Statistics;
  presentLink: PresentLink;
  rules: TargetRules;
  /** ms since 1970. */
  now: () => number;
};

/** The calls that deal with one link. */
export function linkRoutes({ links, keyedLinks, listing, statistics, presentLink, rules, now }: LinkRouteDeps): Routes {
  const validate = createValidator(CreateLinkRequest);
  const validateChange = createValidator(UpdateLinkRequest);
  const judge = (value: object) => draftLink(validate(value), { ...rules, now: now() });

  async function createOnce(request: KeyedRequest, author: Author, value: object): Promise<Reply> {
    let draft: LinkDraft;
    try {
      draft = judge(value);
    } catch (error) {
      return replayOrRefuse(error, () => keyedLinks.find(request));
    }
    return replyWith(await keyedLinks.create(draft, { author, request }));
  }

  return {
    "/v1/links": {
      get: listCall(listing, presentLink),
      post: {
        scope: "links:create",
        async handle(request, author) {
          readQuery(request, []);
          const key = readIdempotencyKey(request);
          const { value, bytes } = await readJsonBody(request, SINGLE_BODY_LIMIT);
          if (key !== null)
            return createOnce(describeRequest("POST /v1/links", author.owner, key, bytes), author, value);
          const link = await links.create(judge(value), author);
          return { status: 201, body: presentLink(link), headers: { Location: `/v1/links/${link.code}` } };
        },
      },
    },
    "/v1/links/:code": {
      get: {
        scope: "links:read",
        async handle(request, { owner }) {
          readQuery(request, []);
          return { status: 200, body: presentLink(await findLink(links, request, owner)) };
        },
      },
      patch: {
        scope: "links:create",
        async handle(request, { owner }) {
          readQuery(request, []);
          const code = codeOf(request);
          const body = await readJsonPatch(request, SINGLE_BODY_LIMIT);
          refuseImmutable(body);
          const link = await links.update(code, owner, draftChange(validateChange(body)));
          if (!link) throw linkNotFound();
          return { status: 200, body: presentLink(link) };
        },
      },
      delete: {
        scope: "links:revoke",
        async handle(request, author) {
          readWait(request);
          const [revoked] = await links.revoke([codeOf(request)], author);
          if (!revoked || revoked.outcome === "not-found") throw linkNotFound();
          return { status: 200, body: { ...presentRevocation(revoked), effective: NOT_CONFIRMED } };
        },
      },
    },
    "/v1/links/:code/stats": {
      get: {
        scope: "stats:read",
        async handle(request, { owner }) {
          readQuery(request, []);
          const { code } = await findLink(links, request, owner);
          return { status: 200, body: await statistics.read(code) };
        },
      },
    },
  };
}

/** An unknown link and somebody else's look the same. */
export function linkNotFound(): Problem {
  return new Problem("not-found", "you have no link with this code");
}

async function findLink(links: LinkStore, request: Request, owner: string) {
  const link = await links.find(codeOf(request), owner);
  if (!link) throw linkNotFound();
  return link;
}

/** What cannot be a code is not looked up: PostgreSQL would refuse some of it as text. */
function codeOf(request: Request): string {
  const { code } = request.params;
  if (typeof code !== "string" || !isCode(code)) throw linkNotFound();
  return code;
}
