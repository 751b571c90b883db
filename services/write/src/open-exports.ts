import type { Database } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import type { Config } from "./config.ts";
import { createExports } from "./exports.ts";
import { createDownloads } from "./http/download.ts";
import { createExportListing } from "./store/export-listing.ts";

/**
 * Downloads of exports: each has two sockets and some buffers, and one owner leaves room for others. A client that has taken
 * nothing for half a minute is gone, or sleeps.
 */
const DOWNLOADS = { max: 64, maxPerOwner: 8, stallMs: 30_000 };

type Options = { config: Config; db: Database; timeoutMs: number; logger: Logger };

/** All that exports are made of here, put together. */
export function openExports({ config, db, timeoutMs, logger }: Options) {
  const exports = createExports({
    baseUrl: config.CLICK_INGEST_URL,
    secret: config.CLICK_INGEST_SECRET,
    timeoutMs,
    onChange: (error) =>
      error === undefined
        ? logger.info("exports can be reached again")
        : logger.warn("exports cannot be reached", { error }),
  });
  const exportListing = createExportListing(db, exports);
  return { exports, exportListing, downloads: createDownloads(DOWNLOADS), accelPrefix: config.EXPORT_ACCEL_PREFIX };
}
