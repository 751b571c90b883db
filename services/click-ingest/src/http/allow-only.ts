import { Problem } from "@linkfence/contracts";
import type { RequestHandler } from "express";

/** Last handler of a path: refuses the methods it has none for, and names the others (RFC 9110 section 15.5.6). */
export function allowOnly(methods: string): RequestHandler {
  return (_request, response) => {
    response.setHeader("Allow", methods);
    throw new Problem("method-not-allowed", `this path takes ${methods} only`);
  };
}
