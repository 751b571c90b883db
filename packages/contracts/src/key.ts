import { type Static, Type } from "typebox";
import { LIST_LIMIT, Nullable, Timestamp } from "./link.ts";

/** What a key may be allowed to do; `admin` includes everything. */
export const SCOPES = ["links:create", "links:read", "links:revoke", "stats:read", "exports", "keys", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** A replaced key is of use for a day, unless its rotation says otherwise: time to hand out the new one. */
export const DEFAULT_OVERLAP_SECONDS = 86_400;
/** Thirty days: who needs longer makes a key of its own. */
export const OVERLAP_MAX_SECONDS = 2_592_000;
/** Characters of an owner's or a key's name at the most. */
export const KEY_NAME_MAX = 100;

/** An API key as it is shown. Its secret is shown once, by the call that makes it, and is stored nowhere. */
export const ApiKey = Type.Object(
  {
    id: Type.String(),
    owner: Type.String(),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    state: Type.Enum(["active", "expired", "revoked"]),
    createdAt: Timestamp,
    /** The key that made it; null for one that was made outside the API. */
    createdBy: Nullable(Type.String()),
    expiresAt: Nullable(Timestamp),
    revokedAt: Nullable(Timestamp),
    revokedBy: Nullable(Type.String()),
    /** The key that a rotation put in its place. */
    replacedBy: Nullable(Type.String()),
    /** To within some five minutes. */
    lastUsedAt: Nullable(Timestamp),
  },
  { additionalProperties: false },
);
export type ApiKey = Static<typeof ApiKey>;

/** A new key, with the whole text that is sent as `Authorization: Bearer <secret>`. */
export const MintedKey = Type.Object(
  { ...ApiKey.properties, secret: Type.String({ description: "Shown this once" }) },
  { additionalProperties: false },
);
export type MintedKey = Static<typeof MintedKey>;

/** Shape of a creation; `null` means the same as absent. Whose key may give what is decided by the domain rules. */
export const CreateKeyRequest = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: KEY_NAME_MAX }),
    scopes: Type.Array(Type.Enum([...SCOPES]), { minItems: 1, maxItems: SCOPES.length, uniqueItems: true }),
    expiresInSeconds: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 3_155_760_000 }))),
    expiresAt: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
    owner: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: KEY_NAME_MAX }))),
  },
  { additionalProperties: false },
);
export type CreateKeyRequest = Static<typeof CreateKeyRequest>;

/** How long the old key is of use beside the new one, in seconds. */
export const RotateKeyRequest = Type.Object(
  {
    overlapSeconds: Type.Optional(
      Nullable(Type.Integer({ minimum: 0, maximum: OVERLAP_MAX_SECONDS, default: DEFAULT_OVERLAP_SECONDS })),
    ),
  },
  { additionalProperties: false },
);
export type RotateKeyRequest = Static<typeof RotateKeyRequest>;

export const ListKeysQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIST_LIMIT, default: 20 })),
    after: Type.Optional(Type.String({ description: "`next` of the page before" })),
    owner: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: KEY_NAME_MAX,
        description: "Whose keys; others' than your own with the scope `admin` alone",
      }),
    ),
  },
  { additionalProperties: false },
);
export type ListKeysQuery = Static<typeof ListKeysQuery>;

/** One page of keys, newest first; `next` is the cursor of the page behind it, and null at the end. */
export const KeyPage = Type.Object(
  { items: Type.Array(ApiKey), next: Nullable(Type.String()) },
  { additionalProperties: false },
);
export type KeyPage = Static<typeof KeyPage>;
