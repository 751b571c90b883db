// Clicks as the JSON in which they are spooled and sent. Visitors' programs and owners are few beside the clicks: what is made
// of their names is kept for the next click that has the same. What pages they came from is not: their addresses may hold
// secrets, which are not to stay in memory.
import { type ClickFacts, type CountryLookup, countryOf, hostOf, storedUserAgent } from "../domain/click.ts";

/**
 * Texts that are remembered, of each kind. A day's visitors of a busy site have some thousand programs, of which the first
 * hundreds make nearly all clicks; at 512 characters each it is half a megabyte at the most.
 */
const REMEMBERED = 1000;
/** A longer text is not worth its room. */
const LENGTH_MAX = 512;

/**
 * Creates the function that makes the JSON of a click: to the letter what `JSON.stringify` makes of `makeClick`.
 * @param lookUp the country of an address; undefined where it is not known
 */
export function createClickText(lookUp: CountryLookup): (id: string, facts: ClickFacts) => string {
  const userAgent = remember((text) => JSON.stringify(storedUserAgent(text)));
  const ownerName = remember((text) => JSON.stringify(text));

  return (id, facts) => {
    const { code, version, at, owner, prefetch, origin } = facts;
    const country = origin === undefined ? undefined : countryOf(origin, lookUp);
    // An id, a code and a country have no letter that JSON writes otherwise.
    let text = `{"id":"${id}","code":"${code}","version":${version},"at":${at},"referrerHost":${
      facts.referrer === undefined ? "null" : JSON.stringify(hostOf(facts.referrer))
    },"userAgent":${facts.userAgent === undefined ? "null" : userAgent(facts.userAgent)}`;
    if (prefetch) text += ',"prefetch":true';
    if (country !== undefined) text += `,"country":"${country}"`;
    if (owner !== null) text += `,"owner":${ownerName(owner)}`;
    return `${text}}`;
  };
}

/** Keeps what `make` made of short texts. A full memory is emptied: it is full again, of what is usual by then, soon after. */
function remember(make: (text: string) => string): (text: string) => string {
  const made = new Map<string, string>();
  return (text) => {
    const known = made.get(text);
    if (known !== undefined) return known;
    const value = make(text);
    if (text.length > LENGTH_MAX) return value;
    if (made.size === REMEMBERED) made.clear();
    made.set(text, value);
    return value;
  };
}
