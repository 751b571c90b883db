// Requests for the fuzzer: each begins as one that the document allows, and most are then bent in one or two places.
import fc from "fast-check";
import { fileText } from "./fuzz-files.fixture.ts";
import { hostile, hostileText, type Pool, plausible } from "./fuzz-values.fixture.ts";
import type { JsonSchema, Operation, Parameter } from "./operations.fixture.ts";

export type FuzzRequest = {
  method: string;
  /** Path and query, as they go over the wire. */
  target: string;
  /** Parameters of the path before they were encoded. */
  params: Readonly<Record<string, string>>;
  /** Fields beside `Authorization`. */
  headers: Readonly<Record<string, string>>;
  /** Null where there is none. */
  body: Uint8Array | null;
  /** How it shows who asks. */
  credentials: "key" | "none" | "nonsense";
};

/** What stands in a path or query in the place of a value, encoded or not. */
type Piece = { text: string; raw: boolean };

/** Broken escapes, overlong and truncated UTF-8, and what is not decoded twice. */
const rawPieces = [
  "%",
  "%zz",
  "%C0%80",
  "%ED%A0%80",
  "a%E0%A4%A",
  "%00",
  "%2e%2e%2f",
  "%252e",
  "%F5%80%80%80",
  "+",
  ";",
];
const mediaTypes = [
  ...["text/plain", "application/problem+json", "application/json; charset=utf-16", "application/json; charset=UTF-8"],
  ...[
    "APPLICATION/JSON",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/csv",
    "*/*",
    ";",
  ],
];
const brokenBodies = [
  "",
  " ",
  "{",
  "nul",
  '{"a":1,}',
  "{'a':1}",
  "[]",
  "null",
  '"x"',
  "1e400",
  '{"a":1}{"b":2}',
  "\ufeff{}",
];
/** Field values as HTTP allows them (RFC 9110 section 5.5). */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** One in so many parts of a request is bent. */
const BENT = 5;

/** Something that is right most of the time. */
function mostly<T>(right: fc.Arbitrary<T>, bent: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: BENT - 1, arbitrary: right }, { weight: 1, arbitrary: bent });
}

/** Requests for an operation of the document. */
export function requestsFor(operation: Operation, pool: Pool): fc.Arbitrary<FuzzRequest> {
  const within = (place: Parameter["in"]) => operation.parameters.filter((parameter) => parameter.in === place);
  return fc
    .record({
      path: fc.record(
        Object.fromEntries(within("path").map((parameter) => [parameter.name, piece(parameter, operation, pool)])),
      ),
      query: query(within("query"), operation, pool),
      method:
        operation.method === "GET" ? mostly(fc.constant("GET"), fc.constant("HEAD")) : fc.constant(operation.method),
      fields: fields(within("header"), operation, pool),
      accept: accept(operation),
      content: content(operation, pool),
      credentials: fc.oneof(
        { weight: 20, arbitrary: fc.constant("key" as const) },
        { weight: 1, arbitrary: fc.constantFrom("none" as const, "nonsense" as const) },
      ),
    })
    .map(({ path, query, method, fields, accept, content, credentials }) => ({
      method,
      target: operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(path[name])) + query,
      params: Object.fromEntries(Object.entries(path).map(([name, { text }]) => [name, text])),
      headers: { ...accept, ...fields, ...content.headers },
      body: content.body,
      credentials,
    }));
}

function piece({ name, schema }: Parameter, { path }: Operation, pool: Pool): fc.Arbitrary<Piece> {
  const encoded = (value: fc.Arbitrary<unknown>) => value.map((value) => ({ text: String(value), raw: false }));
  const raw = fc.constantFrom(...rawPieces).map((text) => ({ text, raw: true }));
  return mostly(encoded(plausible(schema, name, pool, path)), fc.oneof(encoded(hostileText), raw));
}

/** A lone surrogate has no encoding; its bytes in the manner of UTF-8 stand for it. */
function encode(piece: Piece | undefined): string {
  if (!piece) return "";
  if (piece.raw) return piece.text;
  return encodeURIComponent(piece.text.replaceAll(/\p{Surrogate}/gu, "\u0001")).replaceAll("%01", "%ED%A0%80");
}

function query(parameters: readonly Parameter[], operation: Operation, pool: Pool): fc.Arbitrary<string> {
  const known = parameters.map((parameter) =>
    fc.tuple(fc.constant({ text: parameter.name, raw: false }), piece(parameter, operation, pool)),
  );
  const some = known.length === 0 ? fc.constant([]) : fc.subarray(known).chain((chosen) => fc.tuple(...chosen));
  const anything = fc.oneof(
    hostileText.map((text) => ({ text: text.slice(0, 50), raw: false })),
    fc.constantFrom(...rawPieces, "a[b]", "a[]", "&").map((text) => ({ text, raw: true })),
    ...(parameters.length === 0
      ? []
      : [fc.constantFrom(...parameters).map(({ name }) => ({ text: name, raw: false }))]),
  );
  const value = hostileText.map((text) => ({ text, raw: false }));
  const bent = fc.tuple(some, fc.tuple(anything, value)).map(([right, other]) => [...right, other]);
  return mostly<readonly (readonly [Piece, Piece])[]>(some, bent).map((pairs) => {
    const text = pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
    return text === "" ? "" : `?${text}`;
  });
}

function fields(
  parameters: readonly Parameter[],
  { path }: Operation,
  pool: Pool,
): fc.Arbitrary<Record<string, string>> {
  const values = parameters.map(({ name, schema }): [string, fc.Arbitrary<string | undefined>] => [
    name,
    fc.option(mostly(plausible(schema, name, pool, path).map(String), hostileText), { nil: undefined }),
  ]);
  return fc.record(Object.fromEntries(values)).map((given) =>
    // What HTTP itself does not allow cannot be sent by any client.
    Object.fromEntries(
      Object.entries(given).filter((entry): entry is [string, string] => FIELD_VALUE.test(entry[1] ?? "\n")),
    ),
  );
}

/** What kind of answer is asked for; whoever asks for none that there is gets the usual one. */
function accept({ mediaTypes }: Operation): fc.Arbitrary<Record<string, string>> {
  const named = fc.constantFrom(...mediaTypes, "*/*", "image/png", ";q=,").map((type) => ({ Accept: type }));
  return fc.oneof(fc.constant({}), named);
}

type Content = { headers: Record<string, string>; body: Uint8Array | null };

function content({ bodies }: Operation, pool: Pool): fc.Arbitrary<Content> {
  const [form] = Object.values(bodies ?? {});
  const types = Object.keys(bodies ?? { "application/json": true });
  const type = mostly(fc.constantFrom(...types), fc.constantFrom(...mediaTypes));
  const encoding = fc.oneof(
    { weight: 30, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom({ "Content-Encoding": "gzip" }, { "Content-Encoding": "identity" }) },
  );
  const written = form ? bodyText(form.schema, types, pool) : fc.constantFrom(...brokenBodies, '{"a":1}').map(bytesOf);
  const present = fc.record({ type, encoding, body: written }).map(({ type, encoding, body }) => ({
    headers: { "Content-Type": type, ...encoding },
    body,
  }));
  const absent = fc.constant<Content>({ headers: {}, body: null });
  return form
    ? fc.oneof({ weight: 30, arbitrary: present }, { weight: 1, arbitrary: absent })
    : mostly(absent, present);
}

function bodyText(schema: JsonSchema, types: readonly string[], pool: Pool): fc.Arbitrary<Uint8Array> {
  if (!types.some((type) => /[/+]json$/.test(type)))
    return fc.oneof(
      { weight: 8, arbitrary: fc.oneof(...types.map((type) => fileText(type, pool))).map(bytesOf) },
      { weight: 1, arbitrary: hostileText.map(bytesOf) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    );
  const right = plausible(schema, "body", pool);
  const json = (value: fc.Arbitrary<unknown>) => value.map((value) => bytesOf(JSON.stringify(value) ?? "null"));
  const broken = fc.oneof(
    fc.constantFrom(...brokenBodies).map(bytesOf),
    json(right).chain((bytes) => fc.nat({ max: bytes.length }).map((end) => bytes.subarray(0, end))),
    json(right).map((bytes) => Uint8Array.from([...bytes.subarray(0, -1), 0xff, 0x7d])),
  );
  return fc.oneof(
    { weight: 6, arbitrary: json(right) },
    { weight: 5, arbitrary: json(right.chain(bend)) },
    { weight: 1, arbitrary: json(hostile) },
    { weight: 1, arbitrary: broken },
  );
}

/** Bends a value in one place, somewhere within it: another value there, a member less, or one more. */
function bend(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== "object" || value === null) return hostile;
  const names = Object.keys(value);
  if (Array.isArray(value))
    return fc.oneof(
      hostile.map((item) => [...value, item]),
      ...names.map((_, at) => bend(value[at]).map((item) => value.with(at, item))),
    );
  const entries = Object.entries(value);
  const name = hostileText.map((text) => text.slice(0, 200));
  return fc.oneof(
    hostile,
    fc.tuple(name, hostile).map(([name, more]) => Object.fromEntries([...entries, [name, more]])),
    ...names.map((left) => fc.constant(Object.fromEntries(entries.filter(([name]) => name !== left)))),
    ...entries.map(([at, old]) => bend(old).map((bent) => ({ ...value, [at]: bent }))),
  );
}

const encoder = new TextEncoder();
function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}
