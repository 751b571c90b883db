import { Problem } from "@linkfence/contracts";
import { createErrorHandler, type Logger, refuseOddRequests } from "@linkfence/service-shell";
import express, { type Express } from "express";
import { createBodyReader } from "./http/batch-body.ts";
import { createClicksRoute } from "./http/clicks-route.ts";
import { createStatsRoutes } from "./http/stats-routes.ts";
import type { DropReports } from "./queue/drop-reports.ts";
import type { Intake } from "./queue/intake.ts";
import type { Ledger } from "./queue/ledger.ts";
import type { StatsStore } from "./store/stats.ts";

export type AppOptions = {
  intake: Pick<Intake, "offer">;
  ledger: Ledger;
  stats: StatsStore;
  drops: Pick<DropReports, "take">;
  logger: Logger;
  bodies?: ReturnType<typeof createBodyReader>;
};

/** Builds the HTTP interface; it never listens. */
export function createApp({ intake, ledger, stats, drops, logger, bodies = createBodyReader() }: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").set("query parser", "simple");
  app.use((_request, response, next) => {
    response.setHeader("Cache-Control", "no-store");
    next();
  });
  app.use(refuseOddRequests);
  app.use(createClicksRoute({ intake, ledger, drops, logger, readBody: bodies.read }));
  app.use(createStatsRoutes(stats, logger));
  app.use(() => {
    throw new Problem("not-found", "there is nothing under this path");
  });
  app.use(createErrorHandler(logger, () => undefined));
  return app;
}
