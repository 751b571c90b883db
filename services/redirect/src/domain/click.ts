import { type Click, parseUrl, REFERRER_HOST_MAX, USER_AGENT_MAX } from "@linkfence/contracts";

/** What is kept of a request that was answered with a redirect, before it becomes a click. */
export type ClickFacts = {
  code: string;
  version: number;
  /** Milliseconds since 1970 (UTC). */
  at: number;
  referrer: string | undefined;
  userAgent: string | undefined;
  owner: string | null;
  prefetch: boolean;
  /** What tells of the visitor's country: see `countryOf`. It goes no further than this. */
  origin: string | undefined;
};

/**
 * Makes the click that is sent. Of the referrer only the host is kept, of the user agent a bounded part, of the origin the
 * country alone.
 * @param id UUIDv7 whose time is `facts.at`
 * @param lookUp the country of an address; undefined where it is not known
 */
export function makeClick(id: string, facts: ClickFacts, lookUp: CountryLookup): Click {
  const { code, version, at, referrer, userAgent, owner, prefetch, origin } = facts;
  const country = origin === undefined ? undefined : countryOf(origin, lookUp);
  return {
    id,
    code,
    version,
    at,
    referrerHost: referrer === undefined ? null : hostOf(referrer),
    userAgent: userAgent === undefined ? null : storedUserAgent(userAgent),
    ...(prefetch ? { prefetch } : {}),
    ...(country === undefined ? {} : { country }),
    ...(owner === null ? {} : { owner }),
  };
}

/** Tells the country of an address, as two capital letters. */
export type CountryLookup = (address: string) => string | undefined;

/** Given for "not known" by those who tell countries in a header field, and by nobody to a country (ISO 3166-1, 5.2). */
const UNKNOWN = "XX";

/** The country that two letters name, as a trusted proxy sends them, or that an address is looked up for. */
export function countryOf(origin: string, lookUp: CountryLookup): string | undefined {
  const letters = /^[A-Za-z]{2}$/.test(origin) ? origin.toUpperCase() : lookUp(origin);
  return letters === undefined || letters === UNKNOWN || !/^[A-Z]{2}$/.test(letters) ? undefined : letters;
}

/** The host of a referrer; null where it names none that could be stored. */
export function hostOf(referrer: string): string | null {
  const hostname = parseUrl(referrer)?.hostname ?? "";
  return hostname === "" || hostname.length > REFERRER_HOST_MAX ? null : hostname;
}

/** The part of a user agent that is stored. */
export const storedUserAgent = (text: string) => text.slice(0, USER_AGENT_MAX);
