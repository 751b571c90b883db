/** What a request says of its visitor. */
export type VisitorFields = {
  referrer: string | undefined;
  userAgent: string | undefined;
  /** It only fetches ahead, or shows a page small. */
  prefetch: boolean;
};

/**
 * Reads what a request says of its visitor, in one pass over its fields as they came: to have them all by their names, as an
 * object, costs more than the rest of a redirect's own work.
 * - Of several fields named alike the first one counts, as either may stand but once (RFC 9110 sections 10.1.3 and 10.1.5).
 * - Fetching ahead (`prefetch`, `prefetch;prerender`) and showing small (`preview`) is said in the field in which browsers say
 *   so today, or in those of older ones.
 * @param rawHeaders names and values of the fields, in turn, as Node gives them
 */
export function readVisitor(rawHeaders: readonly string[]): VisitorFields {
  let referrer: string | undefined;
  let userAgent: string | undefined;
  let prefetch = false;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    // Names of other lengths are of no interest here: most requests have a dozen of them.
    switch (name.length) {
      case 5:
        if (isNamed(name, "x-moz")) prefetch ||= isAhead(rawHeaders[index + 1] as string);
        break;
      case 7:
        if (isNamed(name, "referer")) referrer ??= rawHeaders[index + 1];
        else if (isNamed(name, "purpose")) prefetch ||= isAhead(rawHeaders[index + 1] as string);
        break;
      case 9:
        if (isNamed(name, "x-purpose")) prefetch ||= isAhead(rawHeaders[index + 1] as string);
        break;
      case 10:
        if (isNamed(name, "user-agent")) userAgent ??= rawHeaders[index + 1];
        break;
      case 11:
        if (isNamed(name, "sec-purpose")) prefetch ||= isAhead(rawHeaders[index + 1] as string);
        break;
    }
  }
  return { referrer, userAgent, prefetch };
}

const isNamed = (name: string, lowerCase: string) => name.toLowerCase() === lowerCase;
const isAhead = (value: string) => /prefetch|preview/i.test(value);
