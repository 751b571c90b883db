import {
  type ClickRecords,
  type FieldFault,
  isCode,
  type LinkSums,
  type OwnerSums,
  Problem,
} from "@linkfence/contracts";
import { PoolOverloaded } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import { type Request, Router } from "express";
import { decideClicks, decideSums, isOwner } from "../domain/stats-request.ts";
import type { StatsStore } from "../store/stats.ts";
import { allowOnly } from "./allow-only.ts";
import { parametersOf, refuseParameter } from "./parameters.ts";

const LINK_PATH = "/v1/links/:code/stats";
const CLICKS_PATH = "/v1/links/:code/clicks";
const OWNER_PATH = "/v1/stats";

/** Creates the routes that write asks. Whether a link exists is not known here: a code without clicks has a total of 0. */
export function createStatsRoutes(stats: StatsStore, logger: Logger): Router {
  const router = Router({ caseSensitive: true, strict: true });

  /** What went wrong in the database is told to the log alone. */
  async function answer<T>(read: Promise<T>): Promise<T> {
    return read.catch((error: unknown) => {
      if (error instanceof PoolOverloaded)
        throw new Problem("overloaded", "too many statistics are being read already; try again later");
      logger.warn("statistics cannot be read", { error });
      throw new Problem("statistics-unavailable", "the statistics cannot be read now; try again later");
    });
  }

  router.get(LINK_PATH, async (request, response) => {
    const code = codeOf(request);
    const asked = accept(decideSums(parametersOf(request, ["start", "steps", "top"])));
    response.json((await answer(stats.readLink(code, asked))) satisfies LinkSums);
  });
  router.get(CLICKS_PATH, async (request, response) => {
    const code = codeOf(request);
    const asked = accept(decideClicks(parametersOf(request, ["limit", "before"])));
    response.json({ items: await answer(stats.readClicks(code, asked)) } satisfies ClickRecords);
  });
  router.get(OWNER_PATH, async (request, response) => {
    const { owner, ...rest } = parametersOf(request, ["owner", "start", "steps", "top"]);
    if (!isOwner(owner))
      throw refuseParameter({ field: "owner", rule: "owner", detail: "must be the name of an owner" });
    response.json((await answer(stats.readOwner(owner, accept(decideSums(rest))))) satisfies OwnerSums);
  });
  for (const path of [LINK_PATH, CLICKS_PATH, OWNER_PATH]) router.all(path, allowOnly("GET, HEAD"));
  return router;
}

function codeOf({ params: { code } }: Request): string {
  if (typeof code === "string" && isCode(code)) return code;
  throw new Problem("not-found", "no link can have this code: a code is 3 to 32 of A-Z a-z 0-9 _ -");
}

function accept<T>(decision: { ok: true; request: T } | { ok: false; fault: FieldFault }): T {
  if (decision.ok) return decision.request;
  throw refuseParameter(decision.fault);
}
