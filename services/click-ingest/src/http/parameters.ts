import { type FieldFault, Problem } from "@linkfence/contracts";
import type { Request } from "express";
import type { Parameters } from "../domain/stats-request.ts";

/** Unknown and repeated parameters are refused: who sends them expects an effect. */
export function parametersOf({ query }: Request, known: readonly string[]): Parameters {
  for (const [name, value] of Object.entries(query)) {
    const field = name.slice(0, 100);
    if (!known.includes(name))
      throw refuseParameter({ field, rule: "unknown", detail: "is not a parameter of this call" });
    if (typeof value !== "string") throw refuseParameter({ field, rule: "repeated", detail: "must be given once" });
  }
  return query as Parameters;
}

/** The refusal of a request for one of its query parameters. */
export function refuseParameter(fault: FieldFault): Problem {
  return new Problem("invalid-request", `the query parameter ${fault.field} ${fault.detail}`, [fault]);
}
