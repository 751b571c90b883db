// Decides on the lines of a file. A line is a request for a creation like any other: the same schema and the same domain
// rules decide, and what they refuse becomes the error of that line.
import { isUtf8 } from "node:buffer";
import { CreateLinkRequest, type ImportFormat, type ImportMapping, Problem } from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import { normalizeColumn } from "../domain/import-columns.ts";
import { type JudgedLine, lineError } from "../domain/import-line.ts";
import { type Cells, ignoredMembers, MAPPINGS } from "../domain/import-mapping.ts";
import { draftLink } from "../domain/link.ts";
import type { TargetRules } from "../domain/target.ts";
import { parseFields } from "./csv-fields.ts";
import type { FileRecord, RecordFault } from "./records.ts";

export type JudgeOptions = {
  format: ImportFormat;
  mapping: ImportMapping;
  /** Normalized names of the columns of a CSV file. */
  columns: readonly string[];
  rules: TargetRules;
  /** ms since 1970. */
  now: () => number;
  /** Told about members of JSON objects that the mapping does not carry over; the same ones any number of times. */
  onIgnored: (names: readonly string[]) => void;
};

const validate = createValidator(CreateLinkRequest);

/** Creates the judgement of one file's records. Lines without any content are left out of its result. */
export function createJudge({ format, mapping, columns, rules, now, onIgnored }: JudgeOptions) {
  function judgeRequest(line: number, request: () => unknown): JudgedLine {
    try {
      return { line, draft: { ...draftLink(validate(request()), { ...rules, now: now() }), line } };
    } catch (error) {
      if (error instanceof Problem) return { line, error: lineError(line, error) };
      throw error;
    }
  }

  function judgeFields(line: number, fields: readonly string[]): JudgedLine | undefined {
    if (fields.every((field) => field === "")) return undefined;
    return judgeRequest(line, () => {
      if (fields.length !== columns.length)
        throw invalidLine("field-count", `has ${fields.length} fields where the header has ${columns.length}`);
      return MAPPINGS[mapping].map(Object.fromEntries(columns.map((name, i) => [name, fields[i]])));
    });
  }

  function judgeJson({ line, bytes }: FileRecord): JudgedLine {
    return judgeRequest(line, () => {
      const object = parseObject(bytes.toString("utf8"));
      if (mapping === "linkfence") return object;
      onIgnored(ignoredMembers(mapping, object, normalizeColumn));
      return MAPPINGS[mapping].map(
        Object.fromEntries(Object.entries(object).map(([name, value]) => [normalizeColumn(name), value])),
      );
    });
  }

  /** Judges records, in order. */
  return function judge(records: readonly FileRecord[]): JudgedLine[] {
    const readable = records.filter((record) => faultOf(record) === null);
    const rows = (format === "csv" ? parseFields(readable.map(({ bytes }) => bytes)) : []).values();
    return records.flatMap((record) => {
      const fault = faultOf(record);
      if (fault) return [{ line: record.line, error: lineError(record.line, fault) }];
      const judged = format === "csv" ? judgeFields(record.line, rows.next().value ?? []) : judgeJson(record);
      return judged ? [judged] : [];
    });
  };
}

const FAULTS: Readonly<Record<RecordFault, string>> = {
  "too-long": "is longer than 32,768 bytes",
  "stray-quote": "has a quote out of place: put the whole field in quotes, and write each quote in it twice",
  "open-quote": "begins a record in quotes that does not end within 32,768 bytes",
};

export function faultOf({ fault, bytes }: FileRecord): Problem | null {
  if (fault) return invalidLine(fault, FAULTS[fault]);
  return isUtf8(bytes) ? null : invalidLine("utf-8", "must be valid UTF-8");
}

/** The line as a whole is named `line`. */
function invalidLine(rule: string, detail: string): Problem {
  return new Problem("invalid-request", `the line ${detail}`, [{ field: "line", rule, detail }]);
}

function parseObject(text: string): Cells {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidLine("json", "must be valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidLine("type", "must be a JSON object");
  return value as Cells;
}
