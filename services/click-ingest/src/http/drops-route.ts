// POST /v1/drops: what a redirect process dropped until its very end. Batches carry such reports beside their clicks, where
// nobody waits for them; the last one has no batch after it that would bring its counters again, so this answer comes after
// the commit.
import { LastDrops, Problem } from "@linkfence/contracts";
import { createValidator, type Logger } from "@linkfence/service-shell";
import { type RequestHandler, Router } from "express";
import type { DropReports } from "../queue/drop-reports.ts";
import { allowOnly } from "./allow-only.ts";

const checkDrops = createValidator(LastDrops);

/** Creates the route. */
export function createDropsRoute(drops: Pick<DropReports, "store">, readBody: RequestHandler, logger: Logger): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.post("/v1/drops", readBody, async (request, response) => {
    const { sender, dropped } = checkDrops(request.body);
    await drops.store(dropped).catch((error: unknown) => {
      logger.warn("the last report of a sender could not be stored", { sender, error });
      throw new Problem("unavailable", "the report could not be stored now; send it again later");
    });
    response.json({});
  });
  router.all("/v1/drops", allowOnly("POST"));
  return router;
}
