import type { Effective } from "@linkfence/contracts";

/** Committed, and nothing claimed about the caches of redirect processes. */
export const NOT_CONFIRMED: Effective = { confirmed: false, by: null, afterMs: null, instances: null };
