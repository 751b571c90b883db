import { documentRoutes } from "../openapi/document-routes.ts";
import { type BatchRouteDeps, batchRoutes } from "./batch-routes.ts";
import type { Routes } from "./call.ts";
import { type ChangeRouteDeps, changeRoutes } from "./changes-routes.ts";
import { type ExportRouteDeps, exportRoutes } from "./exports-routes.ts";
import { type ImportRouteDeps, importRoutes } from "./imports-routes.ts";
import { instanceRoutes } from "./instances-routes.ts";
import { type KeyRouteDeps, keyRoutes } from "./keys-routes.ts";
import { type LinkRouteDeps, linkRoutes } from "./links-routes.ts";
import { type StatsRouteDeps, statsRoutes } from "./stats-routes.ts";

export type ApiRouteDeps = LinkRouteDeps &
  BatchRouteDeps &
  KeyRouteDeps &
  ChangeRouteDeps &
  ImportRouteDeps &
  StatsRouteDeps &
  ExportRouteDeps;

/** Every call of the admin API. Nothing of `deps` is used before a request comes. */
export function apiRoutes(deps: ApiRouteDeps): Routes {
  const routes: Routes = {
    ...linkRoutes(deps),
    ...batchRoutes(deps),
    ...keyRoutes(deps),
    ...changeRoutes(deps),
    ...importRoutes(deps),
    ...instanceRoutes(deps),
    ...statsRoutes(deps),
    ...exportRoutes(deps),
    ...documentRoutes(() => routes),
  };
  return routes;
}

/** The same, to look at what the calls say of themselves. Their handlers must not be called. */
export function describedRoutes(): Routes {
  return apiRoutes({} as ApiRouteDeps);
}
