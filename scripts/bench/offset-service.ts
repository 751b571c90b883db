// The admin API with another listing: pages that are counted off from the newest link, which is what the real one is
// compared with. Its cursor is the number of links before the page. Everything else of it is the product's.
import { randomBytes } from "node:crypto";
import { createDatabase } from "@linkfence/db";
import { createLogger, listen } from "@linkfence/service-shell";
import { createApp } from "../../services/write/src/app.ts";
import { readWriteConfig } from "../../services/write/src/config.ts";
import { createCounts } from "../../services/write/src/counts.ts";
import { generateCode } from "../../services/write/src/domain/code.ts";
import { createBodyBudget } from "../../services/write/src/http/body-budget.ts";
import { createRateLimits } from "../../services/write/src/http/rate-limits.ts";
import { createStatistics } from "../../services/write/src/statistics.ts";
import { createKeyStore } from "../../services/write/src/store/api-keys.ts";
import { createChangeStore } from "../../services/write/src/store/changes.ts";
import { createIdempotency } from "../../services/write/src/store/idempotency.ts";
import { createImportStore } from "../../services/write/src/store/imports.ts";
import { createKeyListing } from "../../services/write/src/store/key-listing.ts";
import { createKeyManagement } from "../../services/write/src/store/key-management.ts";
import { createKeyedLinkStore } from "../../services/write/src/store/keyed-links.ts";
import { createLinkStore } from "../../services/write/src/store/links.ts";
import { createOffsetListing } from "./offset-listing.ts";

const config = readWriteConfig(process.env);
const logger = createLogger("write", config.LOG_LEVEL);
const queryTimeoutMs = config.QUERY_TIMEOUT_MS;
const db = createDatabase({
  url: config.DATABASE_URL,
  applicationName: "linkfence-bench",
  max: config.DATABASE_POOL_MAX,
  queryTimeoutMs,
});
const counts = createCounts();
const newCode = (length: number) => generateCode(length, randomBytes);
const idempotency = createIdempotency({ db, counts, waitMs: queryTimeoutMs, maxWaiting: 1, queryTimeoutMs });
const app = createApp({
  listing: createOffsetListing(db),
  links: createLinkStore({ db, counts, newCode }),
  keyedLinks: createKeyedLinkStore({ db, idempotency, counts, newCode, shortUrlBase: config.PUBLIC_BASE_URL }),
  keys: createKeyStore(db),
  keyManagement: createKeyManagement(db, counts),
  keyListing: createKeyListing(db),
  keyUsage: { note: () => {} },
  changes: createChangeStore(db),
  streams: { admit: () => Promise.reject(new Error("no streams here")) },
  statistics: createStatistics({ baseUrl: config.CLICK_INGEST_URL, timeoutMs: queryTimeoutMs, onChange: () => {} }),
  limits: createRateLimits({
    keyPerMinute: 0,
    addressPerMinute: 0,
    counts: counts.rateLimited,
    now: () => performance.now(),
  }),
  trustedProxies: "",
  importStore: createImportStore(db),
  watch: { confirm: () => Promise.reject(), committedBy: () => null, glance: () => Promise.reject() },
  mono: () => performance.now(),
  imports: { run: () => Promise.reject(new Error("no imports here")) },
  budget: createBodyBudget(1024 * 1024),
  counts,
  logger,
  publicBaseUrl: config.PUBLIC_BASE_URL,
  privateHosts: config.TARGET_PRIVATE_HOSTS,
  now: Date.now,
});
const server = await listen(app, { port: config.PORT, host: config.HOST, maxConnections: 1000 });
process.once("SIGTERM", () => void server.close(1000).then(() => db.close()));
logger.info("listening", { port: server.port });
