// What one key may do to others. No key hands on what it does not have: neither as a scope, nor by the secret of another.
import { type CreateKeyRequest, type FieldFault, Problem, type Scope } from "@linkfence/contracts";
import { allows } from "./api-key.ts";
import { decideExpiry, type Expiry } from "./expiry.ts";
import { isStorable, UNSTORABLE } from "./metadata.ts";

/** Whose key is used, and what it allows. */
export type Holder = { owner: string; scopes: readonly string[] };

/** A key that may be made. */
export type KeyDraft = { owner: string; name: string; scopes: readonly Scope[]; expiry: Expiry };

/**
 * Applies the rules of creation to a request of the right shape.
 * @param now ms since 1970
 * @throws Problem 400 for a text that cannot be stored or times that contradict each other; 403 when the holder may not
 * give one of the scopes, or a key to that owner
 */
export function draftKey(request: CreateKeyRequest, holder: Holder, now: number): KeyDraft {
  const { name, scopes } = request;
  const owner = request.owner ?? holder.owner;
  if (!isStorable(name)) throw invalid({ field: "name", ...UNSTORABLE });
  if (owner !== holder.owner && !isOwnerName(owner)) throw invalid({ field: "owner", ...BAD_OWNER });
  const expiry = decideExpiry(request, now);
  if (!expiry.ok) throw invalid(expiry.fault);
  reachOwner(holder, owner);
  refuseEscalation(holder, scopes);
  return { owner, name, scopes, expiry: expiry.expiry };
}

/**
 * Sees to it that a key does not get at what it does not allow itself.
 * @param scopes of the key that is to be made, replaced or revoked
 * @throws Problem 403 that names the first scope that the holder lacks
 */
export function refuseEscalation(holder: Holder, scopes: readonly string[]): void {
  const missing = scopes.findIndex((scope) => !allows(holder.scopes, scope));
  if (missing === -1) return;
  const detail = `holds ${scopes[missing]}, which your key does not have`;
  const fault = { field: `scopes[${missing}]`, rule: "held", detail };
  throw new Problem("insufficient-scope", `${fault.field} ${detail}`, [fault]);
}

/** Whose keys a holder may see and revoke: null means everybody's. */
export function reachOf(holder: Holder): string | null {
  return allows(holder.scopes, "admin") ? null : holder.owner;
}

/**
 * Decides whose keys are meant.
 * @param named the owner that the request names, if any
 * @throws Problem 400 for a text that is in no database, 403 for another owner without the scope `admin`
 */
export function reachOwner(holder: Holder, named: string | undefined): string {
  if (named === undefined || named === holder.owner) return holder.owner;
  if (!isStorable(named)) throw invalid({ field: "owner", ...UNSTORABLE });
  if (reachOf(holder) === null) return named;
  const detail = "is not the owner of your key; for others' it takes the scope admin";
  throw new Problem("insufficient-scope", `owner ${detail}`, [{ field: "owner", rule: "admin", detail }]);
}

const BAD_OWNER = {
  rule: "text",
  detail: "must be of visible characters and single blanks between them, in Unicode's normal form C",
};

/**
 * Says whether a new owner may have this name. Two owners whose names look the same to everybody but a computer would
 * be taken for one: nothing invisible (the general categories C and Z of the Unicode standard, section 4.5) but single
 * blanks inside, and only one way to write a letter (Unicode Standard Annex 15).
 */
function isOwnerName(text: string): boolean {
  return /^[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u.test(text) && text.normalize("NFC") === text;
}

function invalid(fault: FieldFault): Problem {
  return new Problem("invalid-request", `${fault.field} ${fault.detail}`, [fault]);
}
