import { Problem } from "@linkfence/contracts";
import { createErrorHandler, type Logger } from "@linkfence/service-shell";
import express, { type Express, type RequestHandler } from "express";
import { type Counts, countRequest } from "./counts.ts";
import { ownHostOf, type TargetRules } from "./domain/target.ts";
import { apiRoutes } from "./http/api-routes.ts";
import { createAuthenticator } from "./http/auth.ts";
import type { BodyBudget } from "./http/body-budget.ts";
import { toDatabaseProblem } from "./http/database-problem.ts";
import { createLinkPresenter } from "./http/presentation.ts";
import { addRoutes, countRequests } from "./http/routes.ts";
import type { Imports } from "./imports/imports.ts";
import type { Statistics } from "./statistics.ts";
import type { KeyStore } from "./store/api-keys.ts";
import type { ImportStore } from "./store/imports.ts";
import type { KeyedLinkStore } from "./store/keyed-links.ts";
import type { LinkStore } from "./store/links.ts";
import type { LinkListing } from "./store/listing.ts";

export type AppDeps = {
  links: LinkStore;
  listing: LinkListing;
  keyedLinks: KeyedLinkStore;
  keys: Pick<KeyStore, "findActive">;
  imports: Imports;
  importStore: ImportStore;
  statistics: Statistics;
  budget: BodyBudget;
  counts: Counts;
  logger: Logger;
  /** Origin of short URLs. */
  publicBaseUrl: string;
  privateHosts: TargetRules["privateHosts"];
  /** ms since 1970. */
  now: () => number;
};

/** Creates the admin API. It opens nothing and listens nowhere. */
export function createApp({ publicBaseUrl, privateHosts, counts, logger, keys, ...rest }: AppDeps): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").enable("case sensitive routing").set("query parser", "simple");
  app.use(
    countRequests((route, statusClass) => countRequest(counts, route, statusClass)),
    setCommonHeaders,
  );
  const authenticate = createAuthenticator(keys, (why) => {
    counts.authFailures[why] += 1;
  });
  const deps = {
    ...rest,
    presentLink: createLinkPresenter(publicBaseUrl),
    shortUrlOf: (code: string) => new URL(`/${code}`, publicBaseUrl).href,
    rules: { ownHosts: [ownHostOf(publicBaseUrl)], privateHosts },
  };
  addRoutes(app, apiRoutes(deps), authenticate);
  app.use(() => {
    throw new Problem("not-found", "this service has no such path");
  });
  app.use(createErrorHandler(logger, toDatabaseProblem));
  return app;
}

const setCommonHeaders: RequestHandler = (_request, response, next) => {
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("X-Content-Type-Options", "nosniff");
  next();
};
