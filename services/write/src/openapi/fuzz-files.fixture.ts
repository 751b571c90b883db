// Files for the fuzzer to import: CSV and JSON Lines, most of them as they should be, some bent here and there.
import fc from "fast-check";
import { hostileText, type Pool, plausible } from "./fuzz-values.fixture.ts";
import { document, type JsonSchema } from "./operations.fixture.ts";

const LINES_MAX = 5;
/** Of all mappings, and such as none has. */
const COLUMNS = [
  "target",
  "url",
  "longUrl",
  "alias",
  "title",
  "tags",
  "note",
  "keyword",
  "clicks",
  "",
  "target",
  "TAR-GET",
];
const HEADERS = [
  "target",
  "target,alias",
  "target,title,tags,note",
  "target,expiresAt",
  "target,expiresInSeconds,alias",
];
const LINE_BREAKS = ["\n", "\r\n", "\r", "\n\n"];
/** RFC 4180 ends where these begin. */
const STRAY = ['"', 'a"b', '"a"b', "\ufeff", "\u0000", ";", "\t", '"a\nb"', ",,,,"];

/** A file of a media type that the import call takes. */
export function fileText(type: string, pool: Pool): fc.Arbitrary<string> {
  return type === "text/csv" ? csv(pool) : jsonLines(pool);
}

function csv(pool: Pool): fc.Arbitrary<string> {
  const header = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...HEADERS) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...COLUMNS), { maxLength: 6 }).map((names) => names.join()) },
  );
  return header.chain((header) => {
    const cells = header.split(",").map((name) => cell(name, pool));
    const row = fc.tuple(...cells).map((texts) => texts.join());
    return joined(header, fc.oneof({ weight: 8, arbitrary: row }, { weight: 1, arbitrary: fc.constantFrom(...STRAY) }));
  });
}

function cell(name: string, pool: Pool): fc.Arbitrary<string> {
  const schema = memberOf(name) ?? { type: "string" };
  const right = plausible(schema, name, pool).map((value) => (value === null ? "" : String(value)));
  return fc.oneof({ weight: 5, arbitrary: right }, { weight: 1, arbitrary: hostileText }).map(quoted);
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function jsonLines(pool: Pool): fc.Arbitrary<string> {
  const right = plausible({ $ref: "#/components/schemas/CreateLinkRequest" }, "body", pool).map(
    (value) => JSON.stringify(value) ?? "",
  );
  const broken = fc.oneof(fc.constantFrom("", "{", "[]", "null", '{"target":1}', '{"clicks":1}'), hostileText);
  return joined(undefined, fc.oneof({ weight: 5, arbitrary: right }, { weight: 1, arbitrary: broken }));
}

/** Lines with the same break between them, whether the last one has it or not. */
function joined(first: string | undefined, line: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .record({
      lines: fc.array(line, { maxLength: LINES_MAX }),
      lineBreak: fc.oneof(
        { weight: 6, arbitrary: fc.constant("\n") },
        { weight: 1, arbitrary: fc.constantFrom(...LINE_BREAKS) },
      ),
      ended: fc.boolean(),
    })
    .map(({ lines, lineBreak, ended }) => {
      const all = first === undefined ? lines : [first, ...lines];
      return all.join(lineBreak) + (ended ? lineBreak : "");
    });
}

function memberOf(name: string): JsonSchema | undefined {
  const { properties } = document.components.schemas.CreateLinkRequest as { properties?: Record<string, JsonSchema> };
  return properties?.[name];
}
