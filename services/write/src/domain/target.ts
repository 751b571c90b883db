// The one function that decides where a link may lead; creation, batches and imports all ask it. It accepts what the
// WHATWG URL parser merely encodes differently, and refuses whatever the parser had to delete or reinterpret: such a
// text means one thing to its reader and another to a browser. What is stored and sent is the canonical form.
import { parseUrl, TARGET_MAX_BYTES } from "@linkfence/contracts";
import { findHostFault, type HostRule } from "./host-spelling.ts";
import { isLoopbackHost, isPrivateHost } from "./private-hosts.ts";

export type TargetRules = {
  /** Hosts of the product itself, as `ownHostOf` gives them. */
  ownHosts: readonly string[];
  /** `deny` refuses hosts that are not on the public internet. */
  privateHosts: "allow" | "deny";
};

export type TargetRule =
  | HostRule
  | "surrogate"
  | "control-character"
  | "outer-blank"
  | "unparsable"
  | "scheme"
  | "slashes"
  | "backslash"
  | "own-host"
  | "private-host"
  | "length";

/** `detail` is a predicate whose subject is the target: "must be ...". */
export type TargetDecision = { ok: true; href: string } | { ok: false; rule: TargetRule; detail: string };

/**
 * Decides on one target.
 * @param text as the caller sent it
 * @returns the canonical URL (ASCII, at most 8,192 bytes, the same when decided on again), or the rule that it breaks
 */
export function decideTarget(text: string, rules: TargetRules): TargetDecision {
  if (/\p{Surrogate}/u.test(text)) return refuse("surrogate", "must be well-formed Unicode, without lone surrogates");
  if (/\p{Control}/u.test(text)) return refuse("control-character", "must not have control characters or line breaks");
  if (text !== text.trim()) return refuse("outer-blank", "must not begin or end with blanks");
  const url = parseUrl(text);
  if (!url) return refuse("unparsable", "must be an absolute URL with a valid host, such as https://example.com/page");
  if (url.protocol !== "https:" && url.protocol !== "http:") return refuse("scheme", "must use http: or https:");
  return findSpellingFault(text, url) ?? findPlaceFault(url, rules) ?? checkLength(url.href);
}

/**
 * Describes the product's own public place for `TargetRules.ownHosts`: the host alone, since a public name is ours on
 * every port. A loopback address is not: other servers of a developer's machine live there, so it counts with its port.
 * @param baseUrl absolute http(s) URL
 */
export function ownHostOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  return isLoopbackHost(url.hostname) ? `loopback:${portOf(url)}` : withoutDot(url.hostname);
}

function findSpellingFault(text: string, url: URL): TargetDecision | undefined {
  const [beforeQuery = ""] = text.split(/[?#]/, 1);
  if (beforeQuery.includes("\\")) return refuse("backslash", "must have / instead of \\ before its query");
  const [, authority] = /^[a-z]+:\/\/([^/]+)/i.exec(beforeQuery) ?? [];
  if (authority === undefined)
    return refuse("slashes", "must have exactly two slashes between its scheme and its host");
  const fault = findHostFault(authority, url.hostname);
  return fault && refuse(fault.rule, fault.detail);
}

function findPlaceFault(url: URL, rules: TargetRules): TargetDecision | undefined {
  const own = isLoopbackHost(url.hostname) ? `loopback:${portOf(url)}` : withoutDot(url.hostname);
  if (rules.ownHosts.includes(own)) return refuse("own-host", "must not lead back to this service");
  if (rules.privateHosts === "deny" && isPrivateHost(url.hostname))
    return refuse("private-host", "must lead to a public host: private, loopback and link-local ones are switched off");
  return undefined;
}

function checkLength(href: string): TargetDecision {
  if (href.length <= TARGET_MAX_BYTES) return { ok: true, href };
  return refuse("length", `must have at most ${TARGET_MAX_BYTES} bytes in its canonical, percent-encoded form`);
}

function portOf(url: URL): string {
  if (url.port !== "") return url.port;
  return url.protocol === "https:" ? "443" : "80";
}

function withoutDot(hostname: string): string {
  return hostname.replace(/\.$/, "");
}

function refuse(rule: TargetRule, detail: string): TargetDecision {
  return { ok: false, rule, detail };
}
