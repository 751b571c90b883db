import type { Database } from "@linkfence/db";
import { createClickDays } from "../store/click-days.ts";
import { createClickStore } from "../store/clicks.ts";
import { createDeadClicks } from "../store/dead-clicks.ts";
import { createIsolation } from "../store/isolation.ts";

/** A store with the bounds that the service has by default. */
export function openClickStore(database: Database, { retentionDays = 400, valuesMax = 100 } = {}) {
  const days = createClickDays(database, { retentionDays, timeoutMs: 5000 });
  return { ...createClickStore({ database, days, valuesMax }), days };
}

/** What parts refused clicks from others, in one step as far as it may look. */
export function openIsolation(database: Database, { deadClicks = openDeadClicks(database), budgetMs = 60_000 } = {}) {
  const days = createClickDays(database, { retentionDays: 400, timeoutMs: 5000 });
  return createIsolation({ database, days, deadClicks, valuesMax: 100, budgetMs, timeoutMs: 70_000 });
}

/** Where dead letters go, with room for as many as a test makes. */
export function openDeadClicks(database: Database, { rowsMax = 10_000, bytesMax = 1_000_000_000 } = {}) {
  return createDeadClicks(database, { rowsMax, bytesMax, timeoutMs: 5000 });
}
