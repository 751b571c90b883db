import querystring from "node:querystring";
import { Problem } from "@linkfence/contracts";
import type { Request } from "express";

/**
 * Reads the query parameters of a call. Unknown and repeated ones are refused: who sends them expects an effect.
 * @param allowed names of the parameters that the call knows
 */
export function readQuery<const T extends string>(request: Request, allowed: readonly T[]): Partial<Record<T, string>> {
  refuseMisencoded(request.url.split("?").slice(1).join("?"));
  const query: Partial<Record<T, string>> = {};
  for (const [name, value] of Object.entries(request.query)) {
    const known = allowed.find((candidate) => candidate === name);
    if (known === undefined) throw invalidParameter(name, "unknown", "is not a parameter of this call");
    if (typeof value !== "string") throw invalidParameter(name, "repeated", "must be given once");
    query[known] = value;
  }
  return query;
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
export function invalidParameter(name: string, rule: string, detail: string): Problem {
  const field = name.slice(0, 100);
  return new Problem("invalid-request", `the query parameter ${field} ${detail}`, [{ field, rule, detail }]);
}
