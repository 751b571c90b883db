import { type Static, Type } from "typebox";

/** Most links one batch call may create or revoke. */
export const BATCH_LIMIT = 1000;
/** Bytes of a target's canonical form at the most (UTF-8, which for a canonical URL is ASCII). */
export const TARGET_MAX_BYTES = 8192;

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

/** RFC 3339 section 5.6 in UTC with microseconds, as in `2026-01-31T12:00:00.000000Z`. */
const Timestamp = Type.String();

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

/** How a listing may be narrowed; `active` and `expired` part the links that are not revoked. */
export const LIST_STATES = ["active", "revoked", "expired"] as const;
export type ListState = (typeof LIST_STATES)[number];
/** Links on a page at the most. */
export const LIST_LIMIT = 100;

/** One page. `next` is the cursor of the page behind it, and null at the end; a page before the end may be short. */
export type LinkPage = { items: Link[]; next: string | null };

/** Each item is judged on its own, so the schema of the batch leaves them open. */
export const CreateBatchRequest = Type.Object(
  { links: Type.Array(Type.Unknown(), { minItems: 1, maxItems: BATCH_LIMIT }) },
  { additionalProperties: false },
);
export type CreateBatchRequest = Static<typeof CreateBatchRequest>;

export const RevokeBatchRequest = Type.Object(
  { codes: Type.Array(Type.String({ maxLength: 1024 }), { minItems: 1, maxItems: BATCH_LIMIT }) },
  { additionalProperties: false },
);
export type RevokeBatchRequest = Static<typeof RevokeBatchRequest>;

/** How far a revocation is known to have come. Not confirmed means committed, and nothing claimed about caches. */
export const Effective = Type.Object(
  {
    confirmed: Type.Boolean(),
    by: Nullable(Type.Union([Type.Literal("acknowledged"), Type.Literal("ttl")])),
    afterMs: Nullable(Type.Number()),
    instances: Nullable(Type.Object({ total: Type.Integer(), acknowledged: Type.Integer() })),
  },
  { additionalProperties: false },
);
export type Effective = Static<typeof Effective>;

export type RevokeOutcome = "revoked" | "already-revoked";

/** `version` is the link's new version, or -1 where it had been revoked before; `seq` is the change that revoked it. */
export type RevokeResult = {
  code: string;
  outcome: RevokeOutcome;
  version: number;
  seq: number;
  effective: Effective;
};
