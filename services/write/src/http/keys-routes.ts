import {
  CreateKeyRequest,
  DEFAULT_OVERLAP_SECONDS,
  KeyPage,
  ListKeysQuery,
  MintedKey,
  Problem,
  RotateKeyRequest,
} from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import type { Request } from "express";
import { isKeyId } from "../domain/api-key.ts";
import { draftKey, reachOf, reachOwner, refuseEscalation } from "../domain/key-draft.ts";
import { DEFAULT_LIMIT } from "../domain/list-query.ts";
import type { KeyListing } from "../store/key-listing.ts";
import { type KeyManagement, type KeyTarget, keyNotFound } from "../store/key-management.ts";
import type { Caller } from "./auth.ts";
import { type Call, call, type Routes } from "./call.ts";
import { BODY_PROBLEMS, JSON_TYPE, readJsonObject, readOptionalJsonObject } from "./json-body.ts";
import { PAGE_FIELDS, replyWithPage } from "./page-reply.ts";

/** A name and an owner of full size have below 3 KB, however their characters are escaped. */
const KEY_BODY_LIMIT = 8192;

export type KeyRouteDeps = {
  keyManagement: KeyManagement;
  keyListing: KeyListing;
  /** ms since 1970. */
  now: () => number;
};

/** The calls that deal with API keys. */
export function keyRoutes(deps: KeyRouteDeps): Routes {
  return {
    "/v1/keys": { get: listKeys(deps), post: createKey(deps) },
    "/v1/keys/:id": { delete: revokeKey(deps) },
    "/v1/keys/:id/rotation": { post: rotateKey(deps) },
  };
}

const MINTED = { description: "The new key. Its `secret` is shown this once", schema: MintedKey };

function createKey({ keyManagement, now }: KeyRouteDeps): Call {
  const validate = createValidator(CreateKeyRequest);
  return call({
    scope: "keys",
    describe: {
      operationId: "createKey",
      summary: "Make an API key",
      description:
        "A key can give only scopes that it has itself. Another `owner`, and the scope `admin`, take the scope `admin`. What a key without `admin` makes ends with it at the latest. No `Idempotency-Key` is taken: a secret is kept nowhere, so it cannot be told again.",
      group: "Keys",
      body: { schema: CreateKeyRequest, mediaTypes: JSON_TYPE },
      answers: { 201: MINTED },
      problems: [...BODY_PROBLEMS, "too-many-keys"],
    },
    async handle(request, caller) {
      refuseIdempotencyKey(request);
      const draft = draftKey(validate(await readJsonObject(request, KEY_BODY_LIMIT)), caller, now());
      const key = await keyManagement.create(draft, caller.keyId);
      return { status: 201, body: key, created: key.id };
    },
  });
}

function listKeys({ keyListing }: KeyRouteDeps): Call {
  return call({
    scope: "keys",
    query: ListKeysQuery,
    describe: {
      operationId: "listKeys",
      summary: "List API keys, newest first",
      description: "Your owner's keys, with those that are revoked or expired; never their secrets.",
      group: "Keys",
      answers: { 200: { description: "One page of keys", schema: KeyPage, headers: PAGE_FIELDS } },
      problems: ["invalid-cursor"],
    },
    async handle(_request, caller, { after = null, ...parameters }) {
      const owner = reachOwner(caller, parameters.owner);
      const page = await keyListing.list({ owner, limit: parameters.limit ?? DEFAULT_LIMIT, after });
      return replyWithPage("/v1/keys", parameters, page);
    },
  });
}

function revokeKey({ keyManagement }: KeyRouteDeps): Call {
  return call({
    scope: "keys",
    describe: {
      operationId: "revokeKey",
      summary: "Revoke an API key",
      description:
        "It stops at once, also on connections that are open. Again: the same answer. It takes the scopes of the key that is revoked.",
      group: "Keys",
      answers: { 204: { description: "The key is revoked" } },
      problems: ["not-found", "last-admin-key"],
    },
    async handle(request, caller) {
      const target = targetOf(request, caller);
      await refuseUnheld(keyManagement, target, caller);
      await keyManagement.revoke(target, caller.keyId);
      return { status: 204, text: "" };
    },
  });
}

function rotateKey({ keyManagement }: KeyRouteDeps): Call {
  const validate = createValidator(RotateKeyRequest);
  return call({
    scope: "keys",
    describe: {
      operationId: "rotateKey",
      summary: "Replace an API key",
      description:
        "The new key has the same owner, name, scopes and end. The old one ends when `overlapSeconds` are over.",
      group: "Keys",
      body: { schema: RotateKeyRequest, mediaTypes: JSON_TYPE, optional: true },
      answers: { 201: MINTED },
      problems: [...BODY_PROBLEMS, "not-found", "key-not-usable", "too-many-keys"],
    },
    async handle(request, caller) {
      refuseIdempotencyKey(request);
      const target = targetOf(request, caller);
      const { overlapSeconds } = validate(await readOptionalJsonObject(request, KEY_BODY_LIMIT));
      await refuseUnheld(keyManagement, target, caller);
      const successor = await keyManagement.rotate(target, overlapSeconds ?? DEFAULT_OVERLAP_SECONDS, caller.keyId);
      return { status: 201, body: successor, created: successor.id };
    },
  });
}

/** Refuses a change of a key that may do more. Neither its owner nor its scopes can have changed when it is carried out. */
async function refuseUnheld(keyManagement: KeyManagement, target: KeyTarget, caller: Caller): Promise<void> {
  const key = await keyManagement.find(target);
  if (!key) throw keyNotFound();
  refuseEscalation(caller, key.scopes);
}

/** Who sends one relies on a second call making nothing. */
function refuseIdempotencyKey(request: Request): void {
  if (request.headersDistinct["idempotency-key"] === undefined) return;
  const detail = "is not taken by this call, whose secret is kept nowhere: revoke the key whose secret did not arrive";
  const fault = { field: "Idempotency-Key", rule: "unsupported", detail };
  throw new Problem("invalid-request", `${fault.field} ${detail}`, [fault]);
}

/** What cannot be an id is not looked up: PostgreSQL would refuse some of it as text. */
function targetOf(request: Request, caller: Caller): KeyTarget {
  const { id } = request.params;
  if (typeof id !== "string" || !isKeyId(id)) throw keyNotFound();
  return { id, reach: reachOf(caller) };
}
