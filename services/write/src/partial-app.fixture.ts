// The admin API in this process, for who looks at a part of it: nothing limits it, and imports and streams are left out.
import { randomBytes } from "node:crypto";
import type { Database } from "@linkfence/db";
import { createLogger } from "@linkfence/service-shell";
import { type AppDeps, createApp } from "./app.ts";
import type { Counts } from "./counts.ts";
import { generateCode } from "./domain/code.ts";
import { createExports } from "./exports.ts";
import { createBodyBudget } from "./http/body-budget.ts";
import { createDownloads } from "./http/download.ts";
import { createRateLimits } from "./http/rate-limits.ts";
import { createStatistics } from "./statistics.ts";
import { createKeyStore } from "./store/api-keys.ts";
import { createChangeStore } from "./store/changes.ts";
import { createClickListing } from "./store/click-listing.ts";
import { createExportListing } from "./store/export-listing.ts";
import { createIdempotency } from "./store/idempotency.ts";
import { createImportStore } from "./store/imports.ts";
import { createKeyListing } from "./store/key-listing.ts";
import { createKeyManagement } from "./store/key-management.ts";
import { createKeyedLinkStore } from "./store/keyed-links.ts";
import { createLinkStore } from "./store/links.ts";
import { createLinkListing } from "./store/listing.ts";

const BUDGET_BYTES = 1024 * 1024;

/**
 * Creates it.
 * @param over what is to be otherwise: the part that is looked at
 */
export function createPartialApp({ db, counts }: { db: Database; counts: Counts }, over: Partial<AppDeps>) {
  const { statistics = createStatistics({ baseUrl: "http://127.0.0.1:1", timeoutMs: 1 }) } = over;
  const exports = createExports({ baseUrl: "http://127.0.0.1:1", timeoutMs: 1 });
  const newCode = (length: number) => generateCode(length, randomBytes);
  const publicBaseUrl = "https://sho.example";
  const idempotency = createIdempotency({ db, counts, waitMs: 1000, maxWaiting: 1, queryTimeoutMs: 1000 });
  return createApp({
    links: createLinkStore({ db, counts, newCode }),
    listing: createLinkListing(db, counts),
    keyedLinks: createKeyedLinkStore({ db, idempotency, counts, newCode, shortUrlBase: `${publicBaseUrl}/` }),
    keys: createKeyStore(db),
    keyManagement: createKeyManagement(db, counts),
    keyListing: createKeyListing(db),
    keyUsage: { note: () => {} },
    changes: createChangeStore(db),
    streams: { admit: () => Promise.reject(new Error("no streams here")) },
    importStore: createImportStore(db),
    watch: { confirm: () => Promise.reject(), committedBy: () => null, glance: () => Promise.reject() },
    mono: () => performance.now(),
    imports: { run: () => Promise.reject(new Error("no imports here")) },
    statistics,
    clickListing: createClickListing(db, statistics),
    exports,
    exportListing: createExportListing(db, exports),
    downloads: createDownloads({ max: 1, maxPerOwner: 1, stallMs: 1000 }),
    accelPrefix: undefined,
    live: { admit: () => Promise.reject(new Error("no streams here")) },
    limits: createRateLimits({
      keyPerMinute: 0,
      addressPerMinute: 0,
      counts: counts.rateLimited,
      now: () => performance.now(),
    }),
    trustedProxies: "",
    budget: createBodyBudget(BUDGET_BYTES),
    counts,
    logger: createLogger("write", "error"),
    publicBaseUrl,
    privateHosts: "allow",
    now: Date.now,
    ...over,
  });
}
