import { describe, expect, test } from "@jest/globals";
import { createOriginReader, type OriginSettings } from "./origin.ts";

/** `headers` by their names, of several values each is a field. */
const read = (settings: Partial<OriginSettings>, headers: Record<string, string | string[]>) =>
  createOriginReader({ countryHeader: undefined, addressHeader: undefined, looksUp: false, ...settings })?.({
    rawHeaders: Object.entries(headers).flatMap(([name, values]) => [values].flat().flatMap((value) => [name, value])),
    address: "192.0.2.1",
  });

describe("what tells of a visitor's country", () => {
  test("is nothing where nobody asked, whatever the request says", () => {
    const nothing = { countryHeader: undefined, addressHeader: "X-Real-IP", looksUp: false };
    expect(createOriginReader(nothing)).toBeNull();
  });

  test.each<[string, Partial<OriginSettings>, Record<string, string | string[]>, string | undefined]>([
    ["the trusted header", { countryHeader: "CF-IPCountry" }, { "cf-ipcountry": "NZ" }, "NZ"],
    ["its last value", { countryHeader: "CF-IPCountry" }, { "cf-ipcountry": "DE, NZ" }, "NZ"],
    ["its last field", { countryHeader: "CF-IPCountry" }, { "CF-IPCOUNTRY": ["DE", "US, NZ"] }, "NZ"],
    ["no other header", { countryHeader: "CF-IPCountry" }, { "x-country": "DE" }, undefined],
    ["nothing that is no country", { countryHeader: "CF-IPCountry" }, { "cf-ipcountry": "192.0.2.9" }, undefined],
    ["the connection's address", { looksUp: true }, { "x-real-ip": "192.0.2.9" }, "192.0.2.1"],
    ["the header's address", { looksUp: true, addressHeader: "X-Real-IP" }, { "x-real-ip": "192.0.2.9" }, "192.0.2.9"],
    [
      "the address that the nearest proxy saw",
      { looksUp: true, addressHeader: "X-Forwarded-For" },
      { "x-forwarded-for": "198.51.100.1, 192.0.2.9" },
      "192.0.2.9",
    ],
    ["no address where the header is missing", { looksUp: true, addressHeader: "X-Real-IP" }, {}, undefined],
    [
      "the address where the country's header is missing",
      { looksUp: true, countryHeader: "CF-IPCountry" },
      {},
      "192.0.2.1",
    ],
  ])("is %s", (_what, settings, headers, origin) => {
    expect(read(settings, headers)).toBe(origin);
  });
});
