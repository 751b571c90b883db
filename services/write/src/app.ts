import { Problem } from "@linkfence/contracts";
import { createErrorHandler, type Logger, refuseOddRequests } from "@linkfence/service-shell";
import express, { type Express, type RequestHandler } from "express";
import type { ChangeStreams } from "./changes/streams.ts";
import { type Counts, countRequest } from "./counts.ts";
import { ownHostOf, type TargetRules } from "./domain/target.ts";
import type { Exports } from "./exports.ts";
import { apiRoutes } from "./http/api-routes.ts";
import { createAudit } from "./http/audit.ts";
import { createAuthenticator } from "./http/auth.ts";
import type { BodyBudget } from "./http/body-budget.ts";
import { toDatabaseProblem } from "./http/database-problem.ts";
import type { Downloads } from "./http/download.ts";
import { createGuard } from "./http/guard.ts";
import { createLinkPresenter } from "./http/presentation.ts";
import type { RateLimits } from "./http/rate-limits.ts";
import { identifyRequests } from "./http/request-id.ts";
import type { EffectiveDeps } from "./http/revocation.ts";
import { addRoutes, countRequests } from "./http/routes.ts";
import { setSecurityHeaders } from "./http/security-headers.ts";
import type { Imports } from "./imports/imports.ts";
import type { KeyUsage } from "./key-usage.ts";
import type { LiveCountsStreams } from "./live/live-counts.ts";
import type { Statistics } from "./statistics.ts";
import type { KeyStore } from "./store/api-keys.ts";
import type { ChangeStore } from "./store/changes.ts";
import type { ClickListing } from "./store/click-listing.ts";
import type { ExportListing } from "./store/export-listing.ts";
import type { ImportStore } from "./store/imports.ts";
import type { KeyListing } from "./store/key-listing.ts";
import type { KeyManagement } from "./store/key-management.ts";
import type { KeyedLinkStore } from "./store/keyed-links.ts";
import type { LinkStore } from "./store/links.ts";
import type { LinkListing } from "./store/listing.ts";

export type AppDeps = {
  links: LinkStore;
  listing: LinkListing;
  keyedLinks: KeyedLinkStore;
  keys: Pick<KeyStore, "findActive">;
  keyManagement: KeyManagement;
  keyListing: KeyListing;
  keyUsage: Pick<KeyUsage, "note">;
  changes: Pick<ChangeStore, "readRange">;
  streams: Pick<ChangeStreams, "admit">;
  imports: Pick<Imports, "run">;
  importStore: ImportStore;
  watch: EffectiveDeps["watch"];
  /** ms of the clock of the watch. */
  mono: () => number;
  statistics: Statistics;
  clickListing: ClickListing;
  exports: Exports;
  exportListing: ExportListing;
  downloads: Downloads;
  /** Path under which a proxy in front sends exported files itself, if one does. */
  accelPrefix: string | undefined;
  live: Pick<LiveCountsStreams, "admit">;
  budget: BodyBudget;
  limits: RateLimits;
  /** Addresses and networks of proxies whose X-Forwarded-For is believed, parted by commas; none where it is empty. */
  trustedProxies: string;
  counts: Counts;
  logger: Logger;
  /** Origin of short URLs. */
  publicBaseUrl: string;
  privateHosts: TargetRules["privateHosts"];
  /** ms since 1970. */
  now: () => number;
};

/** Creates the admin API. It opens nothing and listens nowhere. */
export function createApp({ publicBaseUrl, privateHosts, counts, logger, keys, keyUsage, ...rest }: AppDeps): Express {
  const { limits, trustedProxies } = rest;
  const app = express();
  app
    .disable("x-powered-by")
    .disable("etag")
    .enable("case sensitive routing")
    .enable("strict routing")
    .set("query parser", "simple");
  app.set(
    "trust proxy",
    trustedProxies
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean),
  );
  app.use(
    countRequests((route, statusClass) => countRequest(counts, route, statusClass)),
    identifyRequests,
    setSecurityHeaders,
    setCommonHeaders,
    refuseOddRequests,
  );
  const authenticate = createAuthenticator({
    keys,
    onFailure: (why) => {
      counts.authFailures[why] += 1;
    },
    onUse: keyUsage.note,
  });
  const deps = {
    ...rest,
    logger,
    presentLink: createLinkPresenter(publicBaseUrl),
    shortUrlOf: (code: string) => new URL(`/${code}`, publicBaseUrl).href,
    rules: { ownHosts: [ownHostOf(publicBaseUrl)], privateHosts },
  };
  addRoutes(app, apiRoutes(deps), { admit: createGuard(authenticate, limits), audit: createAudit(logger) });
  app.use(() => {
    throw new Problem("not-found", "this service has no such path");
  });
  app.use(createErrorHandler(logger, toDatabaseProblem));
  return app;
}

const setCommonHeaders: RequestHandler = (_request, response, next) => {
  response.setHeader("Cache-Control", "no-store");
  next();
};
