import { isCode, type LinkStats, Problem } from "@linkfence/contracts";
import { PoolOverloaded } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import { Router } from "express";
import type { StatsStore } from "../store/stats.ts";
import { allowOnly } from "./allow-only.ts";

const PATH = "/v1/links/:code/stats";

/** Creates the route. Whether a link exists is not known here: a code without clicks has a total of 0. */
export function createStatsRoute(stats: StatsStore, logger: Logger): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router.get(PATH, async (request, response) => {
    const { code } = request.params;
    if (!isCode(code))
      throw new Problem("not-found", "no link can have this code: a code is 3 to 32 of A-Z a-z 0-9 _ -");
    const total = await stats.countClicks(code).catch((error: unknown) => {
      if (error instanceof PoolOverloaded)
        throw new Problem("overloaded", "too many statistics are being read already; try again later");
      logger.warn("statistics cannot be read", { error });
      throw new Problem("statistics-unavailable", "the statistics cannot be read now; try again later");
    });
    response.json({ code, total } satisfies LinkStats);
  });
  router.all(PATH, allowOnly("GET, HEAD"));
  return router;
}
