import type { IncomingMessage } from "node:http";

export type OriginSettings = {
  /** Field in which a trusted proxy tells the country. */
  countryHeader: string | undefined;
  /** Field in which a trusted proxy tells the address; the other end of the connection where there is none. */
  addressHeader: string | undefined;
  /** Addresses can be looked up. */
  looksUp: boolean;
};

/**
 * Creates the function that takes from a request what tells of its country: two letters or an address, which the drain tells
 * apart, so that a request pays for one text in a column. Null where nothing is asked for.
 */
export function createOriginReader(
  settings: OriginSettings,
): ((request: IncomingMessage) => string | undefined) | null {
  const { looksUp } = settings;
  // Node gives the names of fields in lower case.
  const countryHeader = settings.countryHeader?.toLowerCase();
  const addressHeader = settings.addressHeader?.toLowerCase();
  if (countryHeader === undefined && !looksUp) return null;

  function addressOf(request: IncomingMessage): string | undefined {
    if (addressHeader === undefined) return request.socket.remoteAddress;
    // Each proxy adds what it saw at the end; what stands before may come from the visitor.
    return lastPart(request.headers[addressHeader]);
  }

  return (request) => {
    const country = countryHeader === undefined ? undefined : lastPart(request.headers[countryHeader]);
    if (country !== undefined && country.length === 2) return country;
    return looksUp ? addressOf(request) : undefined;
  };
}

function lastPart(value: string | string[] | undefined): string | undefined {
  return value === undefined ? undefined : String(value).split(",").at(-1)?.trim();
}
