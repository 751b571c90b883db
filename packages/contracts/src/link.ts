import { type Static, Type } from "typebox";
import { ProblemBody } from "./problem.ts";

/** Most links one batch call may create or revoke. */
export const BATCH_LIMIT = 1000;
/** Bytes of a target's canonical form at the most (UTF-8, which for a canonical URL is ASCII). */
export const TARGET_MAX_BYTES = 8192;

/** Fits what is present but not known. */
export const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

/** RFC 3339 section 5.6 in UTC with microseconds, as in `2026-01-31T12:00:00.000000Z`. */
export const Timestamp = Type.String({ format: "date-time" });

export const Link = Type.Object(
  {
    code: Type.String(),
    shortUrl: Type.String(),
    target: Type.String(),
    kind: Type.Union([Type.Literal("RANDOM"), Type.Literal("ALIAS")]),
    state: Type.Union([Type.Literal("ACTIVE"), Type.Literal("REVOKED")]),
    expired: Type.Boolean(),
    version: Type.Integer(),
    owner: Type.String(),
    title: Nullable(Type.String()),
    tags: Type.Array(Type.String()),
    note: Nullable(Type.String()),
    createdAt: Timestamp,
    createdBy: Type.String(),
    expiresAt: Nullable(Timestamp),
    revokedAt: Nullable(Timestamp),
    revokedBy: Nullable(Type.String()),
  },
  { additionalProperties: false },
);
export type Link = Static<typeof Link>;

/** What its owner may say about a link, and change at any time. `null` clears a field. */
const Metadata = {
  title: Type.Optional(Nullable(Type.String({ maxLength: 200 }))),
  tags: Type.Optional(Nullable(Type.Array(Type.String({ minLength: 1, maxLength: 50 }), { maxItems: 20 }))),
  note: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
};

/**
 * Shape of a creation. The schema judges types and lengths only: whether a target or an alias is acceptable is
 * decided by the domain rules, which answer 422 where this answers 400. `null` means the same as absent.
 */
export const CreateLinkRequest = Type.Object(
  {
    target: Type.String({ maxLength: 32_768 }),
    alias: Type.Optional(Nullable(Type.String({ maxLength: 1024 }))),
    codeLength: Type.Optional(Nullable(Type.Integer({ minimum: 8, maximum: 32 }))),
    expiresInSeconds: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 3_155_760_000 }))),
    expiresAt: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
    ...Metadata,
  },
  { additionalProperties: false },
);
export type CreateLinkRequest = Static<typeof CreateLinkRequest>;

/** A merge patch (RFC 7396): what is absent stays. */
export const UpdateLinkRequest = Type.Object(Metadata, { additionalProperties: false });
export type UpdateLinkRequest = Static<typeof UpdateLinkRequest>;

/** Links on a page at the most. */
export const LIST_LIMIT = 100;

/** How a listing may be narrowed; `active` and `expired` part the links that are not revoked. */
export const ListState = Type.Enum(["active", "revoked", "expired"]);
export type ListState = Static<typeof ListState>;

/** Parameters of a listing. What the texts mean is decided by the domain rules. */
export const ListLinksQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIST_LIMIT, default: 20 })),
    after: Type.Optional(Type.String({ description: "`next` of the page before" })),
    state: Type.Optional(ListState),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 50 })),
    createdAfter: Type.Optional(Type.String({ format: "date-time" })),
    createdBefore: Type.Optional(Type.String({ format: "date-time" })),
  },
  { additionalProperties: false },
);
export type ListLinksQuery = Static<typeof ListLinksQuery>;

/** One page. `next` is the cursor of the page behind it, and null at the end; a page before the end may be short. */
export const LinkPage = Type.Object(
  { items: Type.Array(Link), next: Nullable(Type.String()) },
  { additionalProperties: false },
);
export type LinkPage = Static<typeof LinkPage>;

/** Each item is judged on its own, so the schema of the batch leaves them open. */
export const CreateBatchRequest = Type.Object(
  { links: Type.Array(Type.Unknown(), { minItems: 1, maxItems: BATCH_LIMIT }) },
  { additionalProperties: false },
);
export type CreateBatchRequest = Static<typeof CreateBatchRequest>;

/** The same for readers: what each item should be. An item that is something else is refused in its place. */
export const CreateBatchDocument = Type.Object(
  { links: Type.Array(CreateLinkRequest, { minItems: 1, maxItems: BATCH_LIMIT, "x-judged-one-by-one": true }) },
  { additionalProperties: false },
);

export const RevokeBatchRequest = Type.Object(
  { codes: Type.Array(Type.String({ maxLength: 1024 }), { minItems: 1, maxItems: BATCH_LIMIT }) },
  { additionalProperties: false },
);
export type RevokeBatchRequest = Static<typeof RevokeBatchRequest>;

/** How many of the redirect processes that are missing an answer names. */
export const MISSING_SHOWN = 20;

/** How far a revocation is known to have come. Not confirmed means committed, and nothing claimed about caches. */
export const Effective = Type.Object(
  {
    confirmed: Type.Boolean({
      description: "No request that starts from now on is answered with the old target, whichever process it reaches",
    }),
    by: Nullable(
      Type.Union([Type.Literal("acknowledged"), Type.Literal("ttl")], {
        description: "`acknowledged`: every process said so; `ttl`: the others may use nothing that old any more",
      }),
    ),
    afterMs: Nullable(
      Type.Number({ description: "Time from the commit, or from when this process first saw it, to this answer" }),
    ),
    instances: Nullable(
      Type.Object(
        { total: Type.Integer(), acknowledged: Type.Integer() },
        { additionalProperties: false, description: "Of those that are registered at this answer" },
      ),
    ),
    effectiveWithinMs: Type.Optional(
      Type.Number({
        description: "Where it was waited for, and is not confirmed: it is in force after so long at the latest",
      }),
    ),
    missing: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: MISSING_SHOWN,
        description: "Addresses of processes that have not acknowledged it, some of them where there are many",
      }),
    ),
    missingIds: Type.Optional(
      Type.Array(Type.String({ format: "uuid" }), {
        maxItems: MISSING_SHOWN,
        description:
          "Their ids, in the same order, as the list of processes has them: one that ended and its successor may share an address",
      }),
    ),
  },
  { additionalProperties: false },
);
export type Effective = Static<typeof Effective>;

/** How long a revocation waits to be in force everywhere where its caller says nothing. */
export const REVOKE_TIMEOUT_DEFAULT_MS = 5000;
/** Below what common proxies wait for an answer (60 s), and below the time in which a process stops. */
export const REVOKE_TIMEOUT_MAX_MS = 10_000;

/** Parameters of a revocation: how far it is to have come when the call returns. */
export const RevokeQuery = Type.Object(
  {
    wait: Type.Optional(Type.Enum(["effective", "committed"], { default: "effective" })),
    timeoutMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: REVOKE_TIMEOUT_MAX_MS,
        default: REVOKE_TIMEOUT_DEFAULT_MS,
        description: "How long to wait for it to be in force everywhere; ends in 202 where it is not",
      }),
    ),
  },
  { additionalProperties: false },
);
export type RevokeQuery = Static<typeof RevokeQuery>;

const revoked = {
  code: Type.String(),
  outcome: Type.Enum(["revoked", "already-revoked"]),
  version: Type.Integer({ minimum: -1 }),
  seq: Type.Integer(),
};

/** `version` is the link's new version, or -1 where it had been revoked before; `seq` is the change that revoked it. */
export const RevokeResult = Type.Object({ ...revoked, effective: Effective }, { additionalProperties: false });
export type RevokeResult = Static<typeof RevokeResult>;

/** How far the revocation of one link has come. */
export const RevocationState = Type.Object(
  {
    code: Type.String(),
    version: Type.Integer(),
    seq: Type.Integer(),
    revokedAt: Timestamp,
    revokedBy: Nullable(Type.String()),
    effective: Effective,
  },
  { additionalProperties: false },
);
export type RevocationState = Static<typeof RevocationState>;

/** Answers of the batches, one result for each item, in order. `status` is what the item alone would have been answered. */
export const CreateBatchResult = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        Type.Object({ status: Type.Literal(201), link: Link }, { additionalProperties: false }),
        Type.Object({ status: Type.Integer(), problem: ProblemBody }, { additionalProperties: false }),
      ]),
    ),
  },
  { additionalProperties: false },
);
export type CreateBatchResult = Static<typeof CreateBatchResult>;

export const RevokeBatchResult = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        Type.Object({ status: Type.Literal(200), ...revoked }, { additionalProperties: false }),
        Type.Object({ status: Type.Literal(404), problem: ProblemBody }, { additionalProperties: false }),
      ]),
    ),
    effective: Effective,
  },
  { additionalProperties: false },
);
export type RevokeBatchResult = Static<typeof RevokeBatchResult>;
