export type OriginSettings = {
  /** Field in which a trusted proxy tells the country. */
  countryHeader: string | undefined;
  /** Field in which a trusted proxy tells the address; the other end of the connection where there is none. */
  addressHeader: string | undefined;
  /** Addresses can be looked up. */
  looksUp: boolean;
};

/** A request, as far as it tells of its origin. */
export type FromSomewhere = {
  /** Names and values of the fields, in turn, as they came. */
  readonly rawHeaders: readonly string[];
  /** The other end of the connection. */
  readonly address: string | undefined;
};

/**
 * Creates the function that takes from a request what tells of its country: two letters or an address, which the drain tells
 * apart, so that a request pays for one text in a column. Null where nothing is asked for.
 */
export function createOriginReader(settings: OriginSettings): ((request: FromSomewhere) => string | undefined) | null {
  const { looksUp } = settings;
  const countryHeader = settings.countryHeader?.toLowerCase();
  const addressHeader = settings.addressHeader?.toLowerCase();
  if (countryHeader === undefined && !looksUp) return null;

  function addressOf(request: FromSomewhere): string | undefined {
    // Each proxy adds what it saw at the end; what stands before may come from the visitor.
    return addressHeader === undefined ? request.address : lastPart(request.rawHeaders, addressHeader);
  }

  return (request) => {
    const country = countryHeader === undefined ? undefined : lastPart(request.rawHeaders, countryHeader);
    if (country !== undefined && country.length === 2) return country;
    return looksUp ? addressOf(request) : undefined;
  };
}

/** The last of the values that the fields of that name list (RFC 9110 section 5.3). */
function lastPart(rawHeaders: readonly string[], lowerCase: string): string | undefined {
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    const name = rawHeaders[index] as string;
    if (name.length === lowerCase.length && name.toLowerCase() === lowerCase)
      return rawHeaders[index + 1]?.split(",").at(-1)?.trim();
  }
  return undefined;
}
