import type { Effective } from "@linkfence/contracts";
import type { Request } from "express";
import { invalidParameter, readQuery } from "./query.ts";

/** Committed, and nothing claimed about the caches of redirect processes. */
export const NOT_CONFIRMED: Effective = { confirmed: false, by: null, afterMs: null, instances: null };

/** Reads how long a revocation is to wait. `committed` is the default. */
export function readWait(request: Request): "committed" {
  const { wait = "committed" } = readQuery(request, ["wait"]);
  if (wait !== "committed") throw invalidParameter("wait", "enum", "must be committed");
  return wait;
}
