import { type CreateLinkRequest, Problem, type ProblemCode } from "@linkfence/contracts";
import { checkAlias, DEFAULT_CODE_LENGTH } from "./code.ts";
import { decideExpiry, type Expiry } from "./expiry.ts";
import { findTextFault } from "./metadata.ts";
import { decideTarget, type TargetRules } from "./target.ts";

/** A link that may be created: every rule that needs no database has been applied. */
export type LinkDraft = {
  /** Canonical URL. */
  target: string;
  /** The code its owner chose, or null for a random one of `codeLength` characters. */
  alias: string | null;
  codeLength: number;
  expiry: Expiry;
  title: string | null;
  tags: readonly string[];
  note: string | null;
};

export type DraftRules = TargetRules & {
  /** ms since 1970. */
  now: number;
  /** Where the request stands in its body, for the names of fields: empty, or `links[3]`. */
  path?: string;
};

/**
 * Applies the rules of creation to a request of the right shape.
 * @throws Problem with the first broken rule: 400 for fields that contradict each other, 422 for a target or an alias
 */
export function draftLink(request: CreateLinkRequest, rules: DraftRules): LinkDraft {
  const { alias = null, codeLength = null, title = null, tags, note = null } = request;
  const refuse = (code: ProblemCode, field: string, fault: { rule: string; detail: string }): never => {
    const name = rules.path ? `${rules.path}.${field}` : field;
    throw new Problem(code, `${name} ${fault.detail}`, [{ field: name, rule: fault.rule, detail: fault.detail }]);
  };
  if (alias !== null && codeLength !== null)
    refuse("invalid-request", "codeLength", { rule: "exclusive", detail: "cannot be combined with alias" });
  const textFault = findTextFault(request);
  if (textFault) return refuse("invalid-request", textFault.field, textFault);
  const expiry = decideExpiry(request, rules.now);
  if (!expiry.ok) return refuse("invalid-request", expiry.fault.field, expiry.fault);
  const target = decideTarget(request.target, rules);
  if (!target.ok) return refuse("invalid-target", "target", target);
  const name = alias === null ? undefined : checkAlias(alias);
  if (name && !name.ok) return refuse("invalid-alias", "alias", name);
  return {
    target: target.href,
    alias,
    codeLength: codeLength ?? DEFAULT_CODE_LENGTH,
    expiry: expiry.expiry,
    title,
    tags: tags ?? [],
    note,
  };
}
