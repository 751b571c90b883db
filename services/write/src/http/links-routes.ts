import {
  CreateLinkRequest,
  isCode,
  Link,
  Problem,
  RevocationState,
  RevokeQuery,
  RevokeResult,
  UpdateLinkRequest,
} from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import type { Request } from "express";
import { draftLink, type LinkDraft } from "../domain/link.ts";
import { draftChange, refuseImmutable } from "../domain/metadata.ts";
import type { TargetRules } from "../domain/target.ts";
import type { KeyedRequest } from "../store/idempotency.ts";
import type { KeyedLinkStore } from "../store/keyed-links.ts";
import type { Author } from "../store/link-rows.ts";
import type { LinkStore } from "../store/links.ts";
import type { LinkListing } from "../store/listing.ts";
import { call, type Reply, type Routes } from "./call.ts";
import {
  describeRequest,
  IDEMPOTENCY_FIELDS,
  IDEMPOTENCY_PROBLEMS,
  REPLAYED_FIELD,
  readIdempotencyKey,
  replayOrRefuse,
  replyWith,
} from "./idempotency.ts";
import { BODY_PROBLEMS, JSON_TYPE, readJsonBody, readJsonPatch } from "./json-body.ts";
import { listCall } from "./list-call.ts";
import { type PresentLink, presentRevocation } from "./presentation.ts";
import { type EffectiveDeps, lookWhetherEffective, waitUntilEffective } from "./revocation.ts";

export const REVOKE_DESCRIPTION =
  `It is committed at once, and the call returns when no redirect process can answer with the
old target any more. Where that takes longer than \`timeoutMs\`, the answer is 202, and says after how long it holds at the
latest; the same call again goes on waiting.`.replaceAll("\n", " ");

/** A target of full size with a title, tags and a note has about 21 KB. */
export const SINGLE_BODY_LIMIT = 32_768;

export type LinkRouteDeps = {
  links: LinkStore;
  listing: LinkListing;
  keyedLinks: KeyedLinkStore;
  presentLink: PresentLink;
  rules: TargetRules;
  /** ms since 1970. */
  now: () => number;
} & EffectiveDeps;

/** The calls that deal with one link. */
export function linkRoutes(deps: LinkRouteDeps): Routes {
  const { links, keyedLinks, listing, presentLink, rules, now } = deps;
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

  const createLink = call({
    scope: "links:create",
    describe: {
      operationId: "createLink",
      summary: "Create a link",
      group: "Links",
      fields: IDEMPOTENCY_FIELDS,
      body: { schema: CreateLinkRequest, mediaTypes: JSON_TYPE },
      answers: {
        201: {
          description: "The link, as it is kept",
          schema: Link,
          headers: { Location: { description: "Where the link can be read", always: true }, ...REPLAYED_FIELD },
        },
      },
      problems: [
        ...BODY_PROBLEMS,
        ...IDEMPOTENCY_PROBLEMS,
        "invalid-target",
        "invalid-alias",
        "alias-taken",
        "code-space-exhausted",
      ],
    },
    async handle(request, author) {
      const key = readIdempotencyKey(request);
      const { value, bytes } = await readJsonBody(request, SINGLE_BODY_LIMIT);
      if (key !== null) return createOnce(describeRequest("POST /v1/links", author.owner, key, bytes), author, value);
      const link = await links.create(judge(value), author);
      return { status: 201, body: presentLink(link), headers: { Location: `/v1/links/${link.code}` } };
    },
  });

  const showLink = call({
    scope: "links:read",
    describe: {
      operationId: "getLink",
      summary: "Show a link",
      group: "Links",
      answers: { 200: { description: "The link", schema: Link } },
      problems: ["not-found"],
    },
    async handle(request, { owner }) {
      return { status: 200, body: presentLink(await findLink(links, request, owner)) };
    },
  });

  const updateLink = call({
    scope: "links:create",
    describe: {
      operationId: "updateLink",
      summary: "Change title, tags or note of a link",
      description: "A merge patch: what is absent stays, `null` clears. What a link means never changes.",
      group: "Links",
      body: { schema: UpdateLinkRequest, mediaTypes: [...JSON_TYPE, "application/merge-patch+json"] },
      answers: { 200: { description: "The link as it is now", schema: Link } },
      problems: [...BODY_PROBLEMS, "not-found", "immutable-field"],
    },
    async handle(request, { owner }) {
      const code = codeOf(request);
      const body = await readJsonPatch(request, SINGLE_BODY_LIMIT);
      refuseImmutable(body);
      const link = await links.update(code, owner, draftChange(validateChange(body)));
      if (!link) throw linkNotFound();
      return { status: 200, body: presentLink(link) };
    },
  });

  const revokeLink = call({
    scope: "links:revoke",
    query: RevokeQuery,
    describe: {
      operationId: "revokeLink",
      summary: "Revoke a link",
      group: "Revocation",
      description: REVOKE_DESCRIPTION,
      answers: {
        200: { description: "It is revoked, and in force everywhere unless `wait=committed`", schema: RevokeResult },
        202: { description: "It is revoked, and not yet known to be in force everywhere", schema: RevokeResult },
      },
      problems: ["not-found"],
    },
    async handle(request, author, query) {
      const [revoked] = await links.revoke([codeOf(request)], author);
      if (!revoked || revoked.outcome === "not-found") throw linkNotFound();
      const { status, effective } = await waitUntilEffective(deps, [revoked], request, query);
      return { status, body: { ...presentRevocation(revoked), effective } };
    },
  });

  const showRevocation = call({
    scope: "links:read",
    describe: {
      operationId: "getRevocation",
      summary: "Show how far the revocation of a link has come",
      group: "Revocation",
      answers: {
        200: { description: "The revocation, and whether it is in force everywhere", schema: RevocationState },
      },
      problems: ["not-found"],
    },
    async handle(request, { owner }) {
      const revoked = await links.findRevocation(codeOf(request), owner);
      if (!revoked) throw new Problem("not-found", "you have no revoked link with this code");
      const { epoch, ...state } = revoked;
      return {
        status: 200,
        body: { ...state, effective: await lookWhetherEffective(deps, { epoch, seq: state.seq }) },
      };
    },
  });

  return {
    "/v1/links": { get: listCall(listing, presentLink), post: createLink },
    "/v1/links/:code": { get: showLink, patch: updateLink, delete: revokeLink },
    "/v1/links/:code/revocation": { get: showRevocation },
  };
}

/** An unknown link and somebody else's look the same. */
export function linkNotFound(): Problem {
  return new Problem("not-found", "you have no link with this code");
}

/** Finds the owner's link that the path names, or throws a Problem (404). */
export async function findLink(links: LinkStore, request: Request, owner: string) {
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
