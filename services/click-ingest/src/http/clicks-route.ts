// POST /v1/clicks. Each click is judged on its own; the good ones are queued, and the answer waits for their commit. A
// batch that cannot be stored now is answered 503 whole: its sender keeps it and sends it again, with the same ids.
import { Click, ClickBatch, type ClickBatchResult, Problem } from "@linkfence/contracts";
import { createValidator, type Logger } from "@linkfence/service-shell";
import { type RequestHandler, Router } from "express";
import { cleanClick, findFault, type RefusalReason, reasonOfField } from "../domain/click.ts";
import type { DropReports } from "../queue/drop-reports.ts";
import type { Intake } from "../queue/intake.ts";
import type { GivenBackReason, Ledger, Refusals } from "../queue/ledger.ts";
import { allowOnly } from "./allow-only.ts";

export type ClicksRouteOptions = {
  intake: Pick<Intake, "offer">;
  ledger: Ledger;
  drops: Pick<DropReports, "take">;
  logger: Logger;
  /** Puts the parsed body into `request.body`. */
  readBody: RequestHandler;
};

const PROBLEMS: Record<GivenBackReason, () => Problem> = {
  full: () => new Problem("overloaded", "too many clicks wait to be stored; send the batch again later"),
  stopping: () => new Problem("unavailable", "the service is stopping; send the batch again later"),
  deadline: () => new Problem("unavailable", "the clicks could not be stored in time; send the batch again later"),
  abandoned: () => new Problem("unavailable", "the connection ended before the clicks were stored"),
};

const checkBatch = createValidator(ClickBatch);
const checkClick = createValidator(Click);

/** Creates the route. */
export function createClicksRoute({ intake, ledger, drops, logger, readBody }: ClicksRouteOptions): Router {
  const router = Router({ caseSensitive: true, strict: true });

  router.post("/v1/clicks", readBody, async (request, response) => {
    const { sender, clicks, dropped } = checkBatch(request.body);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    ledger.receive(clicks.length);
    const { good, refusals } = judgeClicks(clicks);
    const outcome = await queueClicks(intake, good, gone.signal);
    if (outcome.kind === "given-back") {
      ledger.giveBack(clicks.length, outcome.reason);
      if (outcome.reason === "stopping") response.setHeader("Connection", "close");
      throw PROBLEMS[outcome.reason]();
    }
    if (dropped) drops.take(dropped);
    const { inserted, duplicate, unstorable } = outcome;
    const all = unstorable > 0 ? { ...refusals, unstorable } : refusals;
    const refused = clicks.length - inserted - duplicate;
    if (refused > 0) logger.warn("clicks were refused", { sender, refused, reasons: all });
    ledger.answer(inserted, duplicate, all);
    response.json({ received: clicks.length, inserted, duplicate, refused } satisfies ClickBatchResult);
  });
  router.all("/v1/clicks", allowOnly("POST"));
  return router;
}

/** Nothing to store needs no database. */
async function queueClicks(intake: Pick<Intake, "offer">, clicks: readonly Click[], gone: AbortSignal) {
  if (clicks.length > 0) return intake.offer(clicks, gone);
  return { kind: "stored", inserted: 0, duplicate: 0, unstorable: 0 } as const;
}

function judgeClicks(values: readonly unknown[]): { good: Click[]; refusals: Refusals } {
  const good: Click[] = [];
  const refusals: Refusals = {};
  for (const value of values) {
    const judged = judgeClick(value);
    if (typeof judged === "string") refusals[judged] = (refusals[judged] ?? 0) + 1;
    else good.push(judged);
  }
  return { good, refusals };
}

/** Returns the click as it will be stored, or the reason to refuse it. */
function judgeClick(value: unknown): Click | RefusalReason {
  try {
    const click = checkClick(value);
    return findFault(click) ?? cleanClick(click);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const [fault] = error.errors;
    return fault ? reasonOfField(fault.field, fault.rule) : "shape";
  }
}
