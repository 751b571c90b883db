// What becomes of the lines of a bad file: each is refused for itself, and no line makes anything but a draft or an error.
import { describe, expect, test } from "@jest/globals";
import type { ImportFormat, ImportMapping } from "@linkfence/contracts";
import fc from "fast-check";
import { createJudge } from "./judge.ts";
import { atBeginning, createRecordReader } from "./records.ts";

const NOW = Date.UTC(2026, 0, 31);
const GOOD = "https://example.com/";
const MEGABYTE = 1024 * 1024;

type Setting = { format?: ImportFormat; mapping?: ImportMapping; columns?: string[] };

/** Judges the lines of a file behind its header, and says of each what became of it. */
function judge(file: string | Buffer, { format = "csv", mapping = "linkfence", ...rest }: Setting = {}) {
  const { columns = ["target", "alias", "expiresat", "title"] } = rest;
  const rules = { ownHosts: [], privateHosts: "allow" } as const;
  const ignored: string[] = [];
  const judgeRecords = createJudge({
    ...{ format, mapping, columns, rules, now: () => NOW },
    onIgnored: (names) => ignored.push(...names),
  });
  const reader = createRecordReader(format === "csv", atBeginning());
  const records = [Buffer.from(file), null].flatMap((piece) => [...reader.read(piece)]);
  return { lines: judgeRecords(records), ignored };
}

const outcomes = (file: string | Buffer, setting?: Setting) =>
  judge(file, setting).lines.map((it) =>
    "draft" in it ? [it.line, "good"] : [it.line, it.error.field, it.error.rule, it.error.code],
  );

const bytes = (...parts: (string | Uint8Array | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));

describe("a line of CSV", () => {
  test.each<[string, string | Buffer, unknown[]]>([
    ["that is good", `${GOOD},spring,2030-01-01T00:00:00Z,Spring`, [1, "good"]],
    ["with a target alone", `${GOOD},,,`, [1, "good"]],
    ["in quotes, over two lines", `${GOOD},,,"Spring\r\nand ""summer"""`, [1, "good"]],
    ["with too few fields", `${GOOD},a`, [1, "line", "field-count", "invalid-request"]],
    ["with too many", `${GOOD},,,,`, [1, "line", "field-count", "invalid-request"]],
    ["with a million", ",".repeat(1_000_000), [1, "line", "too-long", "invalid-request"]],
    ["as long as a file", "x".repeat(10 * MEGABYTE), [1, "line", "too-long", "invalid-request"]],
    ["with bytes that are not UTF-8", bytes(GOOD, [0xff, 0xfe], ",,,"), [1, "line", "utf-8", "invalid-request"]],
    ["with half a character", bytes(GOOD, ",,,", [0xe2, 0x82]), [1, "line", "utf-8", "invalid-request"]],
    ["with NUL in its target", `${GOOD}\0,,,`, [1, "target", "control-character", "invalid-target"]],
    ["with NUL in its title", `${GOOD},,,a\0b`, [1, "title", "text", "invalid-request"]],
    ["without a target", ",spring,,", [1, "target", "required", "invalid-request"]],
    ["with a target that is none", "nonsense,,,", [1, "target", "unparsable", "invalid-target"]],
    ["with an alias that is none", `${GOOD},a b,,`, [1, "alias", "characters", "invalid-alias"]],
    ["that has expired", `${GOOD},,2020-01-01T00:00:00Z,`, [1, "expiresAt", "past", "invalid-request"]],
    ["with a date that is none", `${GOOD},,tomorrow,`, [1, "expiresAt", "date-time", "invalid-request"]],
    ["with a title that is too long", `${GOOD},,,${"x".repeat(201)}`, [1, "title", "maxLength", "invalid-request"]],
    ["with a lone quote", `${GOOD},,,5" pipe`, [1, "line", "stray-quote", "invalid-request"]],
    ["with a carriage return of its own", `${GOOD}\r,,,`, [1, "target", "control-character", "invalid-target"]],
  ])("%s", (_what, line, outcome) => {
    expect(outcomes(line)).toEqual([outcome]);
    // Whatever stands in a line, the ones around it are as they would be alone.
    const around = outcomes(bytes(`${GOOD},,,\n`, line, `\n${GOOD},,,\n`));
    expect([around[0], around.at(-1)?.[1]]).toEqual([[1, "good"], "good"]);
    expect(around.filter(([, what]) => what !== "good")).toHaveLength(outcome[1] === "good" ? 0 : 1);
  });

  test("with nothing but commas is no line", () => {
    expect(outcomes(",,,\n\n \n,,,")).toEqual([]);
  });

  test("behind a quote that is never closed is judged all the same", () => {
    const lines = Array.from({ length: 3000 }, (_, i) => `${GOOD}${i},,,`);
    const [first, ...others] = outcomes([`"${GOOD},,,`, ...lines].join("\n"));
    expect(first).toEqual([1, "line", "open-quote", "invalid-request"]);
    expect(others).toEqual(lines.map((_line, i) => [i + 2, "good"]));
  });

  test("ends as any system ends lines", () => {
    expect(outcomes(`${GOOD},,,\r\n${GOOD},,,\n\r\n${GOOD},,,`)).toEqual([1, 2, 4].map((line) => [line, "good"]));
  });
});

describe("a line of JSON", () => {
  const deep = (depth: number) => `{"target":${"[".repeat(depth)}${"]".repeat(depth)}}`;

  test.each<[string, string, unknown[]]>([
    ["that is good", `{"target":"${GOOD}","alias":"spring","tags":["a"],"expiresInSeconds":60}`, [1, "good"]],
    ["that is no JSON", "{target:1}", [1, "line", "json", "invalid-request"]],
    ["cut off in the middle", `{"target":"${GOOD}`, [1, "line", "json", "invalid-request"]],
    ["that is no object", "[1]", [1, "line", "type", "invalid-request"]],
    ["that is null", "null", [1, "line", "type", "invalid-request"]],
    ["nested more deeply than anything", deep(16_000), [1, "target", "type", "invalid-request"]],
    ["with a huge number", `{"target":"${GOOD}","expiresInSeconds":1e400}`, [1, "expiresInSeconds", "maximum"]],
    [
      "with a number of many digits",
      `{"target":"${GOOD}","expiresInSeconds":${"9".repeat(400)}}`,
      [1, "expiresInSeconds"],
    ],
    ["with an unknown member", `{"target":"${GOOD}","clicks":5}`, [1, "clicks", "additionalProperties"]],
    ["with a name that objects have", `{"target":"${GOOD}","__proto__":{}}`, [1, "__proto__", "additionalProperties"]],
    ["with NUL in a name", `{"target":"${GOOD}","a\\u0000":1}`, [1, "a\uFFFD", "additionalProperties"]],
    ["with half a character", `{"target":"${GOOD}","title":"\\ud800"}`, [1, "title", "text", "invalid-request"]],
    ["of 10 MB", `{"title":"${"x".repeat(10 * MEGABYTE)}"}`, [1, "line", "too-long", "invalid-request"]],
  ])("%s", (_what, line, outcome) => {
    const [first, second] = outcomes(`${line}\n{"target":"${GOOD}"}`, { format: "jsonl" });
    expect(first?.slice(0, outcome.length)).toEqual(outcome.slice(0, first?.length));
    expect(second).toEqual([2, "good"]);
  });

  test("of another product may have members that objects are born with", () => {
    const line = `{"longUrl":"${GOOD}","constructor":{"a":1},"__proto__":{"b":2},"toString":1}`;
    const { lines, ignored } = judge(line, { format: "jsonl", mapping: "shlink" });
    expect(lines).toMatchObject([{ line: 1, draft: { target: GOOD } }]);
    expect(ignored).toEqual(["constructor", "__proto__", "toString"]);
  });
});

test("any bytes come to a draft or to an error that can be stored, and to nothing else", () => {
  const pieces = fc.array(
    fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.constantFrom(GOOD, ",,,", '"', "\n", "{", "}")),
    {
      maxLength: 30,
    },
  );
  const formats = fc.constantFrom<ImportFormat>("csv", "jsonl");
  fc.assert(
    fc.property(pieces, formats, (parts, format) => {
      for (const it of judge(bytes(...parts), { format }).lines) {
        if (!("error" in it)) continue;
        for (const text of [it.error.field, it.error.detail]) expect(text).not.toMatch(/\0|\p{Surrogate}/u);
        expect(it.error.detail.length).toBeLessThanOrEqual(500);
      }
    }),
    { numRuns: 200 },
  );
});
