import { Problem, type Scope } from "@linkfence/contracts";
import type { Counts } from "../counts.ts";
import { allows, parseKey } from "../domain/api-key.ts";
import type { ActiveKey, KeyStore } from "../store/api-keys.ts";
import { matchesSecret } from "../store/key-secret.ts";
import type { Author } from "../store/link-rows.ts";

/** Who calls, and what the key that was used allows. */
export type Caller = Author & { scopes: readonly string[] };
export type AuthFailure = keyof Counts["authFailures"];
export type Authenticator = ReturnType<typeof createAuthenticator>;

/** `Bearer` and a token (RFC 6750 section 2.1); the scheme's letter case does not matter (RFC 9110 section 11.1). */
const CREDENTIALS = /^bearer +([^ ]+) *$/i;

/** What is told while a key is judged; each may reject, and so refuse the call. */
export type OnTheWay = {
  /** The key could be one, and is about to be looked up. */
  beforeLookup(key: { id: string; secret: string }): Promise<void>;
  /** The key is valid; what it allows is judged next. */
  onFound(key: ActiveKey): Promise<void>;
};

export type AuthenticatorOptions = {
  keys: Pick<KeyStore, "findActive">;
  /** Told why a call was refused, for the metrics. */
  onFailure: (why: AuthFailure) => void;
  /** Told that a key was used whose last use lies some time back. Must not throw, nor take time. */
  onUse: (keyId: string) => void;
};

/** Creates the check of who is calling. Keys are looked up at every call and kept nowhere. */
export function createAuthenticator({ keys, onFailure, onUse }: AuthenticatorOptions) {
  function refuse(why: Exclude<AuthFailure, "scope">, detail: string): Problem {
    onFailure(why);
    return new Problem("unauthorized", detail);
  }

  /**
   * Finds out who calls.
   * @param header value of the `Authorization` field
   * @throws Problem 401 when the key is missing, unknown, expired or revoked; 403 when it does not allow `scope`
   */
  return async function authenticate(header: string | undefined, scope: Scope, onTheWay: OnTheWay): Promise<Caller> {
    if (header === undefined) throw refuse("missing", "send your key as Authorization: Bearer <key>");
    const key = parseKey(CREDENTIALS.exec(header)?.[1] ?? "");
    if (!key) throw refuse("malformed", "the Authorization field must be Bearer and a key of this service");
    await onTheWay.beforeLookup(key);
    const found = await keys.findActive(key.id);
    // Compared even when there is no such key, so that the time of the answer does not tell which ids exist.
    if (!matchesSecret(key.secret, found?.secretHash) || !found)
      throw refuse("refused", "the key is unknown, expired or revoked");
    await onTheWay.onFound(found);
    if (found.useIsDue) onUse(found.id);
    if (allows(found.scopes, scope)) return { owner: found.owner, keyId: found.id, scopes: found.scopes };
    onFailure("scope");
    throw new Problem("insufficient-scope", `this key does not have the scope ${scope}`);
  };
}
