import { Problem } from "@linkfence/contracts";
import { createErrorHandler, type Logger, refuseOddRequests } from "@linkfence/service-shell";
import express, { type Express } from "express";
import { createAuthentication } from "./http/authenticate.ts";
import { createBodyReader } from "./http/batch-body.ts";
import { createClicksRoute } from "./http/clicks-route.ts";
import { createDropsRoute } from "./http/drops-route.ts";
import { createStatsRoutes } from "./http/stats-routes.ts";
import type { DropReports } from "./queue/drop-reports.ts";
import type { Intake } from "./queue/intake.ts";
import type { Ledger } from "./queue/ledger.ts";
import type { DeadClicks } from "./store/dead-clicks.ts";
import type { Refusals } from "./store/refusals.ts";
import type { StatsStore } from "./store/stats.ts";

export type AppOptions = {
  intake: Pick<Intake, "offer">;
  deadClicks: Pick<DeadClicks, "bury">;
  refusals: Pick<Refusals, "note">;
  ledger: Ledger;
  stats: StatsStore;
  drops: Pick<DropReports, "take" | "store">;
  logger: Logger;
  bodies?: ReturnType<typeof createBodyReader>;
  /** By default everybody is let in. */
  authentication?: ReturnType<typeof createAuthentication>;
};

/** Builds the HTTP interface; it never listens. */
export function createApp(options: AppOptions): Express {
  const { intake, deadClicks, refusals, ledger, stats, drops, logger } = options;
  const { bodies = createBodyReader(), authentication = createAuthentication(undefined) } = options;
  const app = express();
  app.disable("x-powered-by").disable("etag").set("query parser", "simple");
  app.use((_request, response, next) => {
    response.setHeader("Cache-Control", "no-store");
    next();
  });
  app.use(refuseOddRequests);
  // Before anything is read of a body.
  app.use(authentication.check);
  app.use(createClicksRoute({ intake, deadClicks, refusals, ledger, drops, logger, readBody: bodies.read }));
  app.use(createDropsRoute(drops, bodies.read, logger));
  app.use(createStatsRoutes(stats, logger));
  app.use(() => {
    throw new Problem("not-found", "there is nothing under this path");
  });
  app.use(createErrorHandler(logger, () => undefined));
  return app;
}
