import querystring from "node:querystring";
import { Problem } from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import type { Request } from "express";
import type { Static, TObject } from "typebox";

/**
 * Compiles the reading of a call's query parameters. Unknown and repeated ones are refused: who sends them expects an
 * effect. Nothing is guessed: an integer is digits, and neither `0x10` nor `1e1` nor blanks.
 * @param schema the parameters; of text, or integers
 * @returns a function that takes a request, and throws a Problem (400) that names parameter and rule
 */
export function createQueryReader<Q extends TObject>(schema: Q): (request: Request) => Static<Q> {
  const validate = createValidator(schema);
  const types = new Map(
    Object.entries(schema.properties).map(([name, { type }]: [string, { type?: unknown }]) => [name, type]),
  );
  return (request) => {
    refuseMisencoded(request.url.split("?").slice(1).join("?"));
    const query: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(request.query)) {
      if (!types.has(name)) throw invalidParameter(name, "unknown", "is not a parameter of this call");
      if (typeof value !== "string") throw invalidParameter(name, "repeated", "must be given once");
      query[name] = types.get(name) === "integer" ? readDigits(value) : value;
    }
    return validate(query);
  };
}

/** What is no number stays text, which the schema refuses. Sixteen digits are more than any integer of the API has. */
function readDigits(text: string): number | string {
  return /^(?:0|-?[1-9]\d{0,15})$/.test(text) ? Number(text) : text;
}

/** What is no percent-encoded UTF-8 (RFC 3986 section 2.1) would be read as something that nobody wrote. */
function refuseMisencoded(query: string): void {
  for (const pair of query.split("&")) {
    try {
      decodeURIComponent(pair);
    } catch {
      throw invalidParameter(
        querystring.unescape(pair.split("=")[0] ?? ""),
        "encoding",
        "must be percent-encoded UTF-8",
      );
    }
  }
}

/** Names a query parameter that was refused. */
function invalidParameter(name: string, rule: string, detail: string): Problem {
  const field = name.slice(0, 100);
  return new Problem("invalid-request", `the query parameter ${field} ${detail}`, [{ field, rule, detail }]);
}
