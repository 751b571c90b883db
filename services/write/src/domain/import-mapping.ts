// What a line of a file means as a creation. Each mapping is a pure function from the fields of a line, by normalized
// name, to the body of `POST /v1/links`; what it makes is judged like any other, so it repairs nothing and checks little.
import { type ImportMapping, Problem } from "@linkfence/contracts";

/** The fields of a line: texts from CSV, anything from JSON. */
export type Cells = Readonly<Record<string, unknown>>;

export type Mapping = {
  /** Names of the column that has the target, in their normalized form. */
  target: readonly string[];
  /** Normalized names of everything that is carried over or looked at. */
  carries: readonly string[];
  /** Throws a Problem where a link cannot be carried over without changing what it does. */
  map: (cells: Cells) => Record<string, unknown>;
};

/** Parts tags in our own files; a tag may have any other character. */
export const TAG_SEPARATOR = "|";

/** Our own columns. */
const linkfence: Mapping = {
  target: ["target"],
  carries: ["target", "alias", "expiresat", "title", "tags", "note"],
  map: ({ target, alias, expiresat, title, tags, note }) =>
    compact({ target, alias, expiresAt: expiresat, title, note, tags: split(tags, TAG_SEPARATOR) }),
};

/** A dump of the table of links, or the items of the API call `stats` (YOURLS, includes/functions-api.php). */
const yourls: Mapping = {
  target: ["url"],
  carries: ["url", "keyword", "shorturl", "title"],
  // Where a page had no title that could be fetched, YOURLS wrote its address there.
  map: ({ url, keyword, shorturl, title }) =>
    compact({ target: url, alias: given(keyword) ?? lastPart(shorturl), title: title === url ? undefined : title }),
};

/** The web client's CSV export, the columns of `short-url:list`, or objects of the REST API (`ShortUrl` of version 3). */
const shlink: Mapping = {
  target: ["longurl"],
  carries: ["longurl", "shortcode", "shorturl", "title", "tags", "meta", "validuntil"],
  map: ({ longurl, shortcode, shorturl, title, tags, meta, validuntil }) =>
    compact({
      target: longurl,
      alias: given(shortcode) ?? lastPart(shorturl),
      title,
      tags: split(tags, /\s*[|,]\s*/),
      expiresAt: given(validuntil) ?? (isObject(meta) ? meta.validUntil : undefined),
    }),
};

/** Kutt has no export: objects of `GET /api/v2/links`, or its table `links` as CSV. */
const kutt: Mapping = {
  target: ["target"],
  carries: ["target", "address", "link", "description", "expirein", "password", "banned"],
  map: ({ target, address, link, description, expirein, password, banned }) => {
    refuseIf(isSet(password), "password", "was protected by a password, which links here cannot have");
    refuseIf(isSet(banned), "banned", "was banned");
    return compact({ target, alias: given(address) ?? lastPart(link), note: description, ...readKuttExpiry(expirein) });
  },
};

const BITLY_CUSTOM = ["customlink", "custombitlinks", "custombackhalf", "backhalf"];
const BITLY_LINK = ["link", "bitlink", "shortlink", "shorturl", "id"];
const BITLY_TARGET = ["longurl", "originalurl", "destinationurl", "destination"];

/** The CSV export of links, or the objects of `GET /v4/groups/{guid}/bitlinks`. A chosen back-half goes before a drawn one. */
const bitly: Mapping = {
  target: BITLY_TARGET,
  carries: [...BITLY_TARGET, ...BITLY_CUSTOM, ...BITLY_LINK, "title", "tags", "isdeleted"],
  map: (cells) => {
    refuseIf(isSet(cells.isdeleted), "is_deleted", "was deleted");
    return compact({
      target: firstOf(cells, BITLY_TARGET),
      alias: lastPart(firstOf(cells, BITLY_CUSTOM)) ?? lastPart(firstOf(cells, BITLY_LINK)),
      title: cells.title,
      tags: split(cells.tags, /\s*[|,;]\s*/),
    });
  },
};

export const MAPPINGS: Readonly<Record<ImportMapping, Mapping>> = { linkfence, yourls, shlink, kutt, bitly };

/** Parts of an object that its mapping looks into, and what it takes from there. */
const INSIDE: Partial<Record<ImportMapping, Record<string, readonly string[]>>> = { shlink: { meta: ["validUntil"] } };

/**
 * Names what a JSON object has and its mapping does not carry over. Members that say nothing are left out.
 * @param normalize how names are compared
 */
export function ignoredMembers(mapping: ImportMapping, object: Cells, normalize: (name: string) => string): string[] {
  const { carries } = MAPPINGS[mapping];
  return Object.entries(object).flatMap(([name, value]) => {
    const parts = INSIDE[mapping] ?? {};
    // Any name may stand in a file, also one that every object has by birth.
    const inside = Object.hasOwn(parts, name) ? parts[name] : undefined;
    if (inside && isObject(value))
      return Object.keys(value)
        .filter((part) => !inside.includes(part) && value[part] !== null)
        .map((part) => `${name}.${part}`);
    return carries.includes(normalize(name)) ? [] : [name];
  });
}

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ...{ ms: 0.001, second: 1, minute: 60, hour: 3600, day: 86_400, week: 604_800, month: 2_592_000, year: 31_557_600 },
};

/**
 * The API tells how long a link has left, in words ("2 days"), counted from the import on; the table has a time in UTC.
 * Anything else is passed on as it is, and judged as a time.
 */
function readKuttExpiry(value: unknown): { expiresAt?: unknown; expiresInSeconds?: number } {
  if (typeof value !== "string" || value === "") return { expiresAt: value };
  const [, amount, unit = ""] = /^(-?\d{1,12}) (ms|[a-z]+?)s?$/.exec(value) ?? [];
  const seconds = Number(amount) * (UNIT_SECONDS[unit] ?? Number.NaN);
  if (Number.isFinite(seconds)) {
    refuseIf(seconds <= 0, "expiresInSeconds", "has expired", "past");
    return { expiresInSeconds: Math.max(1, Math.floor(seconds)) };
  }
  const [, date, time, offset = "Z"] = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(\S+)?$/.exec(value) ?? [];
  if (date === undefined) return { expiresAt: value };
  return { expiresAt: `${date}T${time}${/^[+-]\d\d$/.test(offset) ? `${offset}:00` : offset}` };
}

function refuseIf(broken: boolean, field: string, detail: string, rule = "not-carried"): void {
  if (broken)
    throw new Problem("invalid-request", `the link ${detail}`, [{ field, rule, detail: `the link ${detail}` }]);
}

/** A cell that says yes: a flag, a number, or the hash of a password. */
function isSet(value: unknown): boolean {
  return Boolean(given(value)) && !(typeof value === "string" && /^(?:false|f|0|no)$/i.test(value));
}

/** An empty cell is no cell. */
function given(value: unknown): unknown {
  return value === "" || value === null ? undefined : value;
}

function compact(request: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => given(value) !== undefined));
}

function split(value: unknown, separator: string | RegExp): unknown {
  if (typeof value !== "string" || value === "") return given(value);
  return value.split(separator);
}

function firstOf(cells: Cells, names: readonly string[]): unknown {
  const found = names.map((name) => cells[name]).find((value) => given(value) !== undefined && !isEmptyList(value));
  return Array.isArray(found) ? found[0] : found;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** The last part of the path of a short URL, or a bare code; undefined for a host alone. What is no text stays. */
function lastPart(value: unknown): unknown {
  if (typeof value !== "string") return given(value);
  const [path = ""] = value.replace(/^[a-z]+:\/\//i, "").split(/[?#]/, 1);
  const parts = path.replace(/\/$/, "").split("/");
  return parts.length === 1 && path.includes(".") ? undefined : given(parts.slice(1).join("/") || parts[0]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
