/** What a key may be allowed to do; `admin` includes everything. */
export const SCOPES = ["links:create", "links:read", "links:revoke", "stats:read", "exports", "keys", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Characters of a key's id, which is no secret: it stands in logs and in `createdBy`. */
export const KEY_ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
export const KEY_ID_LENGTH = 12;

/** The secret is 32 random bytes in base64url (RFC 4648 section 5) without padding: 43 characters. */
const KEY = /^linkfence_([A-Za-z0-9]{12})_([A-Za-z0-9_-]{43})$/;

/** Takes a key apart. Returns undefined for a text that cannot be one; such a text is never looked up. */
export function parseKey(text: string): { id: string; secret: string } | undefined {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

export function formatKey(id: string, secret: string): string {
  return `linkfence_${id}_${secret}`;
}

/** Says whether a key's scopes allow a call that needs `scope`. */
export function allows(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}
