import { Problem } from "@linkfence/contracts";
import type { Request } from "express";

/**
 * The value of a header field that may come once (RFC 9110 section 5.3); Node goes by the first of several, and whatever
 * stands in front may have gone by the last. Throws a Problem (400) where it comes more often.
 */
export function onlyOne(request: Request, name: string): string | undefined {
  const values = request.headersDistinct[name.toLowerCase()] ?? [];
  if (values.length < 2) return values[0];
  const fault = { field: name, rule: "once", detail: "send this field once" };
  throw new Problem("invalid-request", `${name}: ${fault.detail}`, [fault]);
}
