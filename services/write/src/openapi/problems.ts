// How a call can be refused, as the document says it: one answer for each status, with the codes that it may carry.
import { PROBLEM_CODES, PROBLEM_GUIDE, ProblemBody, type ProblemCode } from "@linkfence/contracts";
import { PROBLEM_STATUS } from "@linkfence/service-shell";
import type { Call } from "../http/call.ts";
import { EVERY_CALL_PROBLEMS, KEYED_CALL_PROBLEMS } from "../http/every-call.ts";
import { COMMON_FIELDS, headerField } from "./header-fields.ts";
import { type Json, type SchemaWriter, sortByName } from "./schemas.ts";

/** Header fields of refusals by status (RFC 9110 sections 10.2.3, 11.6.1 and 15.6.4); of other statuses none. */
const FIELDS: Readonly<Record<number, Json>> = {
  401: { "WWW-Authenticate": headerField("How to show a key", true) },
  409: { "Retry-After": headerField("Seconds to wait; only where waiting helps", false) },
  429: { "Retry-After": headerField("Seconds to wait", true) },
  503: { "Retry-After": headerField("Seconds to wait", true) },
};

/** Every code that a call may answer, in the order in which the codes are listed. */
export function problemsOf({ scope, describe }: Call): ProblemCode[] {
  const known = new Set([...EVERY_CALL_PROBLEMS, ...(scope === null ? [] : KEYED_CALL_PROBLEMS), ...describe.problems]);
  return PROBLEM_CODES.filter((code) => known.has(code));
}

/** Creates the writer of refusals. Those of several calls that are the same stand once, among the components. */
export function createProblemWriter(schemas: SchemaWriter) {
  const components: Json = {};

  /** The refusals of a call, by their status. */
  function write(call: Call): Json {
    const byStatus = new Map<number, ProblemCode[]>();
    for (const code of problemsOf(call))
      byStatus.set(PROBLEM_STATUS[code], [...(byStatus.get(PROBLEM_STATUS[code]) ?? []), code]);
    return Object.fromEntries([...byStatus].map(([status, codes]) => [status, refer(status, codes)]));
  }

  function refer(status: number, codes: readonly ProblemCode[]): Json {
    const name = codes.map(pascalCase).join("Or");
    components[name] ??= problemAnswer(status, codes, schemas);
    return { $ref: `#/components/responses/${name}` };
  }

  return { write, components: () => sortByName(components) };
}

/** Every code with its status, its meaning and what to do, as a table in Markdown. */
export function problemTable(): string {
  const rows = PROBLEM_CODES.map((code) => {
    const { meaning, remedy } = PROBLEM_GUIDE[code];
    return `| \`${code}\` | ${PROBLEM_STATUS[code]} | ${meaning} | ${remedy} |`;
  });
  return ["| code | status | meaning | what to do |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function problemAnswer(status: number, codes: readonly ProblemCode[], schemas: SchemaWriter): Json {
  const said = codes.map((code) => `\`${code}\`: ${PROBLEM_GUIDE[code].meaning} ${PROBLEM_GUIDE[code].remedy}`);
  const narrowed = { properties: { status: { const: status }, code: { enum: codes } } };
  const schema = { allOf: [schemas.write(ProblemBody), narrowed] };
  return {
    description: said.join("\n\n"),
    headers: { ...COMMON_FIELDS, ...FIELDS[status] },
    content: { "application/problem+json": { schema } },
  };
}

function pascalCase(code: string): string {
  return code
    .split("-")
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}
