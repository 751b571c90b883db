// Nonsense for every parameter, member and field of the document, by what its schema says.
import { createSchemaJudge } from "./fuzz-judge.fixture.ts";
import { type JsonSchema, type Parameter, resolve } from "./operations.fixture.ts";

const fits = createSchemaJudge();
/** More than a line or a parameter may have, and less than what a request has room for. */
const LONG = "x".repeat(6000);

const NUMBERS = [
  "",
  "-1",
  "%2B1",
  "+",
  "1.5",
  "1e1",
  "0x10",
  "010",
  "abc",
  "%00",
  "null",
  "true",
  "1,2",
  "[]",
  "{}",
  "1%20",
];
const FAR_NUMBERS = ["9007199254740993", "99999999999999999999", "1".repeat(6000), "%D9%A2", "Infinity", "NaN"];
const TIMES = ["", "now", "infinity", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "%00", "0", "null"];
/** What is no percent-encoded UTF-8: a lone surrogate, an overlong NUL, bytes that begin nothing, broken escapes. */
const MISENCODED = ["%ED%A0%80", "%C0%80", "%ff", "%", "%zz", "a%E0%A4"];

/** Values for a query parameter, as they go over the wire, of which none is one that its schema and its call allow. */
export function wrongValues({ schema }: Parameter): string[] {
  if (schema.type === "integer") return [...NUMBERS, ...FAR_NUMBERS, ...beyond(schema)];
  if (Array.isArray(schema.enum)) return ["", "%00", "null", "x", LONG, ...schema.enum.map((name) => `${name}x`)];
  if (schema.format === "date-time") return [...TIMES, LONG];
  const tooShort = typeof schema.minLength === "number" && schema.minLength > 0 ? [""] : [];
  return ["%00", "a%00b", LONG, ...tooShort];
}

/** Pairs of a query that no parameter of this name can stand in. */
export function wrongPairs(name: string): string[] {
  const shapes = [`${name}=1&${name}=1`, `${name}[]=1`, `${name}[x]=1`, `${name}.x=1`, `${name.toUpperCase()}=1`];
  return [...shapes, ...MISENCODED.map((value) => `${name}=${value}`)];
}

/** Parameters that no call has. */
export const STRANGE_PAIRS = ["surprise=1", "__proto__=1", "constructor=1", "%00=1", "=1", `${"k".repeat(6000)}=1`];

/** Parts of a path that name nothing, or are nothing at all. */
export const WRONG_PARTS = [
  ...[...MISENCODED, "%00", "a%00b", "..%2F..%2Fetc", "%2e%2e", "%20", "null", "[]", "%F0%9F%8D%9E", "%0a", "*"],
  ...["__proto__", LONG],
];

/** Values of a header field, by its name, of which none is one. */
export const WRONG_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "Idempotency-Key": ["", '"', '""', '"a', "a b", "a,b", "a;b", "\u00e9", "\u00ed\u00a0\u0080", "k".repeat(256), LONG],
  "Last-Event-ID": [
    "",
    "-1",
    "+1",
    "01",
    "1.5",
    "1e3",
    "0x1",
    "x",
    "9007199254740992",
    "1,2",
    "\u00ff",
    "1".repeat(6000),
  ],
};

const VALUES: readonly unknown[] = [
  ...[null, true, false, -1, 0, 1.5, 2 ** 53, -(2 ** 63), 1e21, 1e308, "", "1", "x".repeat(40_000), {}, { a: 1 }],
  ...[[], [null], [1], [[]], [{}], ["x", "x"], Array(1001).fill("x")],
];
/** No schema says it, and PostgreSQL could not store it. */
const UNSTORABLE = ["\u0000", "a\u0000b", "\ud800", "x\udfff"];

/** Values for a member of a body that its schema forbids, and texts that cannot be stored. */
export function wrongMembers(schema: JsonSchema): unknown[] {
  const texts = fits(schema, "abc") ? UNSTORABLE : [];
  const lists = fits(schema, ["abc"]) ? UNSTORABLE.map((text) => [text]) : [];
  return [...VALUES.filter((value) => !fits(schema, value)), ...texts, ...lists];
}

/** Whole bodies that are no JSON object, or one that no call takes. */
export const WRONG_BODIES = [
  ...[
    "",
    " ",
    "{",
    "[]",
    "null",
    "5",
    '"x"',
    "{}{}",
    "{'a':1}",
    '{"a":1,}',
    '{"__proto__":{"a":1}}',
    '{"constructor":1}',
  ],
  ...[
    '{"\\u0000":1}',
    '{"\\ud800":1}',
    `${"[".repeat(3000)}${"]".repeat(3000)}`,
    `{"a":${'{"a":'.repeat(1000)}1${"}".repeat(1001)}`,
  ],
];

/** The members of a body's schema. */
export function membersOf(schema: JsonSchema): [string, JsonSchema][] {
  return Object.entries((resolve(schema).properties ?? {}) as Record<string, JsonSchema>);
}

function beyond({ minimum, maximum }: JsonSchema): string[] {
  const below = typeof minimum === "number" ? [String(minimum - 1)] : [];
  return typeof maximum === "number" ? [...below, String(BigInt(maximum) + 1n)] : below;
}
