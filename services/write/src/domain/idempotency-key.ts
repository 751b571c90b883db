/** Far more than a UUID or a digest needs; it bounds what a caller can have stored. */
export const IDEMPOTENCY_KEY_MAX = 255;

/** A structured-field string (RFC 9651 section 3.3.3) of visible ASCII alone; `\"` and `\\` are its only escapes. */
const QUOTED = /^"((?:[!#-[\]-~]|\\["\\])*)"$/;
/** Visible ASCII without what structured fields use for something else: quotes, escapes, parameters and lists. */
const BARE = /^[!#-+\--:<-[\]-~]+$/;

export type IdempotencyKeyRule = "repeated" | "empty" | "length" | "characters";
/** `detail` is a predicate whose subject is the header field. */
export type IdempotencyKeyDecision =
  | { ok: true; key: string | null }
  | { ok: false; rule: IdempotencyKeyRule; detail: string };

/**
 * Reads an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header, section 2.1, which makes it a structured-field
 * string). Many clients send the key bare, so that is accepted too, and names the same key: `"k1"` and `k1` are one.
 * @param fields values of all header fields of that name
 * @returns the key without quotes and escapes, null where there is none, or the rule that it breaks
 */
export function decideIdempotencyKey(fields: readonly string[]): IdempotencyKeyDecision {
  const [field] = fields;
  if (field === undefined) return { ok: true, key: null };
  if (fields.length > 1) return refuse("repeated", "must be sent once");
  const quoted = QUOTED.exec(field)?.[1];
  if (field === "" || quoted === "") return refuse("empty", "must not be empty: send a key, or leave the field out");
  if (quoted === undefined && !BARE.test(field))
    return refuse("characters", 'must be visible ASCII, in double quotes where it has any of " , ; or \\');
  const key = quoted?.replace(/\\(.)/g, "$1") ?? field;
  if (key.length > IDEMPOTENCY_KEY_MAX)
    return refuse("length", `must have at most ${IDEMPOTENCY_KEY_MAX} characters beside its quotes`);
  return { ok: true, key };
}

function refuse(rule: IdempotencyKeyRule, detail: string): IdempotencyKeyDecision {
  return { ok: false, rule, detail };
}
