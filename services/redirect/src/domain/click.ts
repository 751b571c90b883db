import { type Click, parseUrl, REFERRER_HOST_MAX, USER_AGENT_MAX } from "@linkfence/contracts";

/** What is kept of a request that was answered with a redirect, before it becomes a click. */
export type ClickFacts = {
  code: string;
  version: number;
  /** Milliseconds since 1970 (UTC). */
  at: number;
  referrer: string | undefined;
  userAgent: string | undefined;
};

/**
 * Makes the click that is sent. Of the referrer only the host is kept, of the user agent a bounded part.
 * @param id UUIDv7 whose time is `facts.at`
 */
export function makeClick(id: string, facts: ClickFacts): Click {
  const { code, version, at, referrer, userAgent } = facts;
  return {
    id,
    code,
    version,
    at,
    referrerHost: referrer === undefined ? null : hostOf(referrer),
    userAgent: userAgent === undefined ? null : userAgent.slice(0, USER_AGENT_MAX),
  };
}

function hostOf(referrer: string): string | null {
  const hostname = parseUrl(referrer)?.hostname ?? "";
  return hostname === "" || hostname.length > REFERRER_HOST_MAX ? null : hostname;
}
