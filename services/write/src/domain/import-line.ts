import type { ImportError, Problem } from "@linkfence/contracts";
import type { LinkDraft } from "./link.ts";

/** A creation, and the line of the file that it comes from. */
export type LineDraft = LinkDraft & { line: number };
/** What was decided on a line without asking the database. */
export type JudgedLine = { line: number; draft: LineDraft } | { line: number; error: ImportError };

/** What is told of a line stays short, however long its names are. */
const DETAIL_MAX = 500;
const NAME_MAX = 150;

/** The error of a line, out of the problem that a creation would be answered. */
export function lineError(line: number, problem: Problem): ImportError {
  const [fault] = problem.errors;
  const field = storable(fault?.field ?? (problem.code === "alias-taken" ? "alias" : "line"), NAME_MAX);
  const detail = storable(problem.message, DETAIL_MAX);
  return { line, field, rule: fault?.rule ?? problem.code, code: problem.code, detail };
}

/** Names come from the file, and may have what PostgreSQL cannot keep. */
export function storable(text: string, most: number): string {
  return text
    .slice(0, most)
    .replaceAll("\0", "\uFFFD")
    .replace(/\p{Surrogate}/gu, "\uFFFD");
}
