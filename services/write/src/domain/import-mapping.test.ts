import { describe, expect, test } from "@jest/globals";
import type { ImportMapping } from "@linkfence/contracts";
import fc from "fast-check";
import { normalizeColumn, readColumns } from "./import-columns.ts";
import { type Cells, ignoredMembers, MAPPINGS } from "./import-mapping.ts";

const LONG = "https://example.com/page";

/** What a row of an export becomes: its columns by the header that the product writes. */
function mapRow(mapping: ImportMapping, header: string, cells: readonly string[]) {
  const { names, ignored } = readColumns(mapping, header.split(","));
  expect(cells).toHaveLength(names.length);
  return { request: MAPPINGS[mapping].map(Object.fromEntries(names.map((name, i) => [name, cells[i]]))), ignored };
}

function mapObject(mapping: ImportMapping, object: Cells) {
  const named = Object.entries(object).map(([name, value]) => [normalizeColumn(name), value]);
  return {
    request: MAPPINGS[mapping].map(Object.fromEntries(named)),
    ignored: ignoredMembers(mapping, object, normalizeColumn),
  };
}

describe("rows of an export in CSV", () => {
  test.each<[string, ImportMapping, string, string[], Record<string, unknown>, string[]]>([
    [
      "our own columns",
      "linkfence",
      "target,alias,expiresAt,title,tags,note",
      [LONG, "spring", "2030-01-31T12:00:00Z", "Spring", "one|two, three", "kept"],
      {
        ...{ target: LONG, alias: "spring", expiresAt: "2030-01-31T12:00:00Z" },
        ...{ title: "Spring", tags: ["one", "two, three"], note: "kept" },
      },
      [],
    ],
    [
      "YOURLS: the table of links",
      "yourls",
      "keyword,url,title,timestamp,ip,clicks",
      ["spring", LONG, "Spring", "2024-03-01 10:00:00", "192.0.2.7", "12"],
      { target: LONG, alias: "spring", title: "Spring" },
      ["timestamp", "ip", "clicks"],
    ],
    [
      "YOURLS: a title that is the address itself",
      "yourls",
      "shorturl,url,title",
      ["https://sho.rt/spring", LONG, LONG],
      { target: LONG, alias: "spring" },
      [],
    ],
    [
      "Shlink: the web client's export",
      "shlink",
      "createdAt,domain,shortCode,shortUrl,longUrl,title,tags,visits",
      ["2024-03-01T10:00:00+01:00", "", "spring", "https://sho.rt/spring", LONG, "Spring", "one|two", "12"],
      { target: LONG, alias: "spring", title: "Spring", tags: ["one", "two"] },
      ["createdAt", "domain", "visits"],
    ],
    [
      "Shlink: the list of the command line",
      "shlink",
      "Short Code,Title,Short URL,Long URL,Date created,Visits count,Tags",
      ["spring", "", "https://sho.rt/spring", LONG, "2024-03-01T10:00:00+01:00", "12", "one, two"],
      { target: LONG, alias: "spring", tags: ["one", "two"] },
      ["Date created", "Visits count"],
    ],
    [
      "Kutt: its table of links",
      "kutt",
      "id,address,target,description,expire_in,password,banned,visit_count,created_at",
      ["7", "spring", LONG, "for spring", "2030-01-31 12:00:00.5+00", "", "f", "12", "2024-03-01 10:00:00+00"],
      { target: LONG, alias: "spring", note: "for spring", expiresAt: "2030-01-31T12:00:00.5+00:00" },
      ["id", "visit_count", "created_at"],
    ],
    [
      "Bitly: a link with a chosen back-half",
      "bitly",
      "Created,Bitlink,Custom link,Long URL,Title,Tags,Total Clicks",
      ["2024-03-01", "bit.ly/3xYz", "https://bit.ly/spring", LONG, "Spring", "one; two", "12"],
      { target: LONG, alias: "spring", title: "Spring", tags: ["one", "two"] },
      ["Created", "Total Clicks"],
    ],
    [
      "Bitly: a link without one",
      "bitly",
      "link,custom_bitlinks,long_url",
      ["https://bit.ly/3xYz", "", LONG],
      { target: LONG, alias: "3xYz" },
      [],
    ],
  ])("%s", (_what, mapping, header, cells, request, ignored) => {
    expect(mapRow(mapping, header, cells)).toEqual({ request, ignored });
  });
});

describe("objects of an API", () => {
  test.each<[string, ImportMapping, Cells, Record<string, unknown>, string[]]>([
    [
      "YOURLS",
      "yourls",
      { shorturl: "http://sho.rt/spring", url: LONG, title: "Spring", timestamp: "2024-03-01 10:00:00", clicks: "12" },
      { target: LONG, alias: "spring", title: "Spring" },
      ["timestamp", "clicks"],
    ],
    [
      "Shlink: what a limit of visits would change is told",
      "shlink",
      {
        ...{ shortCode: "spring", longUrl: LONG, tags: ["one"], title: null, domain: null },
        meta: { validSince: null, validUntil: "2030-01-31T12:00:00+01:00", maxVisits: 5 },
        visitsSummary: { total: 12 },
      },
      { target: LONG, alias: "spring", tags: ["one"], expiresAt: "2030-01-31T12:00:00+01:00" },
      ["domain", "meta.maxVisits", "visitsSummary"],
    ],
    [
      "Kutt: the rest of a life in words",
      "kutt",
      { address: "spring", target: LONG, description: null, password: false, banned: false, expire_in: "2 days" },
      { target: LONG, alias: "spring", expiresInSeconds: 172_800 },
      [],
    ],
    [
      "Kutt: the end as a time",
      "kutt",
      { link: "https://kutt.example/spring", target: LONG, expire_in: "2030-01-31T12:00:00.000Z", visit_count: 3 },
      { target: LONG, alias: "spring", expiresAt: "2030-01-31T12:00:00.000Z" },
      ["visit_count"],
    ],
    [
      "Bitly",
      "bitly",
      {
        ...{ id: "bit.ly/3xYz", link: "https://bit.ly/3xYz", custom_bitlinks: ["https://go.example/spring"] },
        ...{ long_url: LONG, title: "Spring", tags: ["one"], archived: false, created_at: "2024-03-01T10:00:00+0000" },
      },
      { target: LONG, alias: "spring", title: "Spring", tags: ["one"] },
      ["archived", "created_at"],
    ],
  ])("%s", (_what, mapping, object, request, ignored) => {
    expect(mapObject(mapping, object)).toEqual({ request, ignored });
  });

  test.each<[string, ImportMapping, Cells, string, string]>([
    ["a password", "kutt", { target: LONG, password: true }, "password", "not-carried"],
    ["a password, as its hash", "kutt", { target: LONG, password: "$2a$12$abc" }, "password", "not-carried"],
    ["a ban", "kutt", { target: LONG, banned: "t" }, "banned", "not-carried"],
    ["a life that is over", "kutt", { target: LONG, expire_in: "-3 days" }, "expiresInSeconds", "past"],
    ["its deletion", "bitly", { long_url: LONG, is_deleted: true }, "is_deleted", "not-carried"],
  ])("with %s are refused rather than changed in what they do", (_what, mapping, object, field, rule) => {
    expect(() => mapObject(mapping, object)).toThrow(
      expect.objectContaining({ errors: [expect.objectContaining({ field, rule })] }),
    );
  });

  test("may have members of any name and kind, and only ever a Problem comes of it", () => {
    const name = fc.oneof(fc.constantFrom("constructor", "__proto__", "toString", "meta", "tags", "link"), fc.string());
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(MAPPINGS)), fc.dictionary(name, fc.jsonValue()), (mapping, object) => {
        try {
          mapObject(mapping as ImportMapping, object);
        } catch (error) {
          expect(error).toHaveProperty("code", "invalid-request");
        }
      }),
    );
  });
});

describe("the header", () => {
  const faultOf = (mapping: ImportMapping, header: readonly string[]) => {
    try {
      readColumns(mapping, header);
    } catch (error) {
      const { code, errors } = error as { code: string; errors: { field: string; rule: string }[] };
      return [code, errors[0]?.field, errors[0]?.rule];
    }
    return "accepted";
  };

  test.each<[string, ImportMapping, string[], string]>([
    ["lacks the target", "linkfence", ["alias"], "missing-column"],
    ["is empty", "yourls", [""], "missing-column"],
    ["has a column twice", "linkfence", ["target", "alias", "Alias"], "duplicate-column"],
    ["has a column of another product twice", "bitly", ["long_url", "Long URL"], "duplicate-column"],
    ["has a column that is none of ours", "linkfence", ["target", "clicks"], "unknown-column"],
    ["is parted by semicolons", "linkfence", ["target;alias"], "unknown-column"],
    ["has more columns than any export", "yourls", ["url", ...Array.from({ length: 200 }, String)], "columns"],
  ])("that %s is refused as a whole", (_what, mapping, header, rule) => {
    expect(faultOf(mapping, header)).toEqual(["invalid-request", "header", rule]);
  });

  test("may write its names in any case, and name what is ignored any number of times", () => {
    expect(readColumns("linkfence", [" Target ", "EXPIRES_AT"]).names).toEqual(["target", "expiresat"]);
    expect(readColumns("yourls", ["URL", "x", "x", ""]).ignored).toEqual(["x", "x", "number 4 (without a name)"]);
  });
});
