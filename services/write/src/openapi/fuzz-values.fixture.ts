// Values for the fuzzer: such as a schema lets pass, and such as make trouble somewhere sooner or later.
import fc from "fast-check";
import { type JsonSchema, resolve } from "./operations.fixture.ts";

/** Values that answers gave or that are plausible, by the name under which they stand: `code`, `target`, `after`. */
export type Pool = ReturnType<typeof createPool>;

/** Of each name so many are remembered; the oldest give way. */
const REMEMBERED = 20;
const TEN_KILOBYTES = 10_240;
/** Arrays of a body are so long at the most; the API's own limits are tried elsewhere. */
const ITEMS_MAX = 4;
const TEXT_MAX = 60;
/** Under which parameters and fields the values of an answer's field can be used again. */
const USED_AS: Readonly<Record<string, readonly string[]>> = {
  next: ["after", "cursor"],
  code: ["codes", "alias"],
  createdAt: ["createdAfter", "createdBefore", "from", "to"],
  seq: ["after", "Last-Event-ID"],
  position: ["after", "Last-Event-ID"],
  id: ["importId"],
};

/** Creates an empty pool, but for addresses: no other text leads anywhere. */
export function createPool() {
  const known = new Map<string, unknown[]>([
    [
      "target",
      [
        "https://example.com/",
        "https://example.com/a?b=c#d",
        "http://xn--bcher-kva.example/%20",
        "https://é.example/é",
      ],
    ],
  ]);

  function remember(name: string, value: unknown): void {
    const values = known.get(name) ?? [];
    values.push(value);
    known.set(name, values.slice(-REMEMBERED));
  }

  /**
   * Remembers every plain value of an answer.
   * @param path of the operation that gave it
   */
  function learn(path: string, answer: unknown): void {
    if (typeof answer !== "object" || answer === null) return;
    for (const [name, value] of Object.entries(answer)) {
      if (typeof value === "object") learn(path, value);
      else
        for (const use of [name, ...(USED_AS[name] ?? [])])
          for (const known of [use, nameWithin(path, use)]) remember(known, value);
    }
  }

  return {
    learn,
    /** Values of a name, from operations on the same things where a path is given and they gave any. */
    of(name: string, path?: string): readonly unknown[] {
      const near = path === undefined ? undefined : known.get(nameWithin(path, name));
      return near ?? known.get(name) ?? [];
    },
  };
}

/** Ids, cursors and numbers of one kind of things are nonsense for another: `/v1/keys/{id}` and `/v1/keys` are of one. */
function nameWithin(path: string, name: string): string {
  return `${path.split("/")[2]} ${name}`;
}

const hostileTexts = [
  ...["", " ", "\n", "\u0000", "a\u0000b", "\ud800", "x\udfff\ud800", "\uffff", "\u202e\u200b", "😀", "é", "e\u0301"],
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "prototype",
    "' OR 1=1 --",
    "$1",
    "{}",
    "[object Object]",
  ],
  ...["../../etc/passwd", "..", "%00", "%zz", "%C0%80", "a/b", "a?b", "a#b", "a&b=c", "a;b", 'a"b', "a\\b", "*", "<b>"],
  ...[
    "-1",
    "0",
    "1e309",
    "NaN",
    "Infinity",
    "null",
    "true",
    "0x10",
    "9223372036854775808",
    "99999999999999999999",
    "1.5",
  ],
  ...[
    "2026-02-30T00:00:00Z",
    "275761-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "infinity",
    "2026-01-01",
    "x".repeat(TEN_KILOBYTES),
  ],
];
const hostileNumbers = [
  -1,
  -0,
  0,
  1,
  1.5,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  2 ** 64,
  1e21,
  1e308,
  5e-324,
  -(2 ** 63) - 2 ** 12,
];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ unit: "binary", maxLength: TEXT_MAX }),
  fc.string({ maxLength: TEXT_MAX }),
);

/** Anything that JSON can say, and more of what it should not. */
export const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...hostileNumbers) },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], { a: 1 }) },
  { weight: 1, arbitrary: hostileText.map((name) => Object.fromEntries([[name, 1]])) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 2000 }).map(nest) },
  { weight: 1, arbitrary: fc.jsonValue() },
);

function nest(depth: number): unknown {
  let value: unknown = "deep";
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

/**
 * Values that a schema lets pass, as far as that can be told.
 * @param name under which the value stands; remembered values of that name come up often
 * @param path of the operation whose parameter it is
 */
export function plausible(given: JsonSchema, name: string, pool: Pool, path?: string): fc.Arbitrary<unknown> {
  const made = byKind(resolve(given), name, pool);
  const remembered = fc.tuple(fc.nat(), made).map(([index, fallback]) => {
    const values = pool.of(name, path);
    return values.length === 0 ? fallback : values[index % values.length];
  });
  const isWhole = ["object", "array"].includes(String(resolve(given).type));
  return isWhole ? made : fc.oneof({ weight: 3, arbitrary: remembered }, { weight: 1, arbitrary: made });
}

function byKind(schema: JsonSchema, name: string, pool: Pool): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  if (Array.isArray(schema.anyOf))
    return fc.oneof(...(schema.anyOf as JsonSchema[]).map((arm) => plausible(arm, name, pool)));
  switch (schema.type) {
    case "string":
      return text(schema);
    case "integer":
      return fc.integer({
        min: number(schema.minimum, -1000),
        max: Math.min(number(schema.maximum, 1000), 2 ** 31 - 1),
      });
    case "number":
      return fc.double({ noNaN: true, min: number(schema.minimum, -1e6), max: number(schema.maximum, 1e6) });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return array(schema, name, pool);
    case "object":
      return object(schema, pool);
    default:
      return fc.jsonValue();
  }
}

function text(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.format === "date-time")
    return fc
      .date({ min: new Date(0), max: new Date("2100-01-01T00:00:00Z"), noInvalidDate: true })
      .map((date) => date.toISOString());
  if (typeof schema.pattern === "string") return fc.stringMatching(new RegExp(schema.pattern));
  const minLength = number(schema.minLength, 0);
  return fc.string({
    minLength,
    maxLength: Math.max(minLength, Math.min(number(schema.maxLength, TEXT_MAX), TEXT_MAX)),
  });
}

function array(schema: JsonSchema, name: string, pool: Pool): fc.Arbitrary<unknown[]> {
  const minLength = number(schema.minItems, 0);
  const maxLength = Math.max(minLength, Math.min(number(schema.maxItems, ITEMS_MAX), ITEMS_MAX));
  return fc.array(plausible((schema.items ?? {}) as JsonSchema, name, pool), { minLength, maxLength });
}

/** Mostly with a few of the members that may be left out: all of them together seldom make sense. */
function object(schema: JsonSchema, pool: Pool): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const model = Object.fromEntries(properties.map(([name, property]) => [name, plausible(property, name, pool)]));
  const required = new Set(schema.required as string[] | undefined);
  const optional = Object.keys(model).filter((name) => !required.has(name));
  const left = fc.oneof(
    { weight: 4, arbitrary: fc.shuffledSubarray(optional, { maxLength: Math.min(2, optional.length) }) },
    { weight: 1, arbitrary: fc.shuffledSubarray(optional) },
  );
  return fc
    .tuple(fc.record(model), left)
    .map(([whole, kept]) =>
      Object.fromEntries(Object.entries(whole).filter(([name]) => required.has(name) || kept.includes(name))),
    );
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
