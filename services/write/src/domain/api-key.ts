/** Characters of a key's id, which is no secret: it stands in logs and in `createdBy`. */
export const KEY_ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
export const KEY_ID_LENGTH = 12;
const KEY_ID = /^[A-Za-z0-9]{12}$/;

/** The secret is 32 random bytes in base64url (RFC 4648 section 5) without padding: 43 characters. */
const KEY = /^linkfence_([A-Za-z0-9]{12})_([A-Za-z0-9_-]{43})$/;

/** Says whether a text can be the id of a key. One that cannot is never looked up. */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

/** Takes a key apart. Returns undefined for a text that cannot be one; such a text is never looked up. */
export function parseKey(text: string): { id: string; secret: string } | undefined {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

export function formatKey(id: string, secret: string): string {
  return `linkfence_${id}_${secret}`;
}

/** Says whether a key's scopes allow what takes `scope`. */
export function allows(scopes: readonly string[], scope: string): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}
