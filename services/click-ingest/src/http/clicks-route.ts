// POST /v1/clicks. Each click is judged on its own; the good ones are queued, and the answer waits for their commit and for
// that of the dead letters. A batch that cannot be stored now is answered 503 whole: its sender keeps it and sends it
// again, with the same ids.
import { type Click, ClickBatch, type ClickBatchResult, Problem } from "@linkfence/contracts";
import { createValidator, type Logger } from "@linkfence/service-shell";
import { type RequestHandler, Router } from "express";
import { type DeadLetter, writeDeadLetter } from "../domain/dead-letter.ts";
import { judgeClick } from "../judge-click.ts";
import type { DropReports } from "../queue/drop-reports.ts";
import type { Intake } from "../queue/intake.ts";
import type { Account, GivenBackReason, Ledger } from "../queue/ledger.ts";
import type { Fates, Outcome } from "../queue/submission.ts";
import type { DeadClicks } from "../store/dead-clicks.ts";
import { allowOnly } from "./allow-only.ts";

export type ClicksRouteOptions = {
  intake: Pick<Intake, "offer">;
  deadClicks: Pick<DeadClicks, "bury">;
  ledger: Ledger;
  drops: Pick<DropReports, "take">;
  logger: Logger;
  /** Puts the parsed body into `request.body`. */
  readBody: RequestHandler;
  /** ms since 1970 */
  now?: () => number;
};

const PROBLEMS: Record<GivenBackReason, () => Problem> = {
  full: () => new Problem("overloaded", "too many clicks wait to be stored; send the batch again later"),
  stopping: () => new Problem("unavailable", "the service is stopping; send the batch again later"),
  deadline: () => new Problem("unavailable", "the clicks could not be stored in time; send the batch again later"),
  unburied: () => new Problem("unavailable", "the dead letters could not be kept now; send the batch again later"),
  abandoned: () => new Problem("unavailable", "the connection ended before the clicks were stored"),
};
const NOTHING_TO_STORE = { kind: "stored", inserted: 0, duplicate: 0, late: 0, unstorable: [] } as const;

const checkBatch = createValidator(ClickBatch);

/** Creates the route. */
export function createClicksRoute(options: ClicksRouteOptions): Router {
  const { intake, ledger, drops, logger, readBody, now = Date.now } = options;
  const router = Router({ caseSensitive: true, strict: true });

  router.post("/v1/clicks", readBody, async (request, response) => {
    const { sender, clicks, dropped } = checkBatch(request.body);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const judged = judgeClicks(clicks, now());
    ledger.receive(clicks.length);
    const good = [...judged.good.keys()];
    const giveBack = (reason: GivenBackReason) => {
      ledger.giveBack(clicks.length, reason);
      if (reason === "stopping") response.setHeader("Connection", "close");
      return PROBLEMS[reason]();
    };
    const outcome: Outcome = good.length > 0 ? await intake.offer(good, gone.signal) : NOTHING_TO_STORE;
    if (outcome.kind === "given-back") throw giveBack(outcome.reason);
    const account = await settle(sender, outcome, judged).catch((error: unknown) => {
      logger.warn("dead letters cannot be kept", { sender, error });
      throw giveBack("unburied");
    });
    if (dropped) drops.take(dropped);
    ledger.answer(account);
    response.json(toResult(clicks.length, account));
  });
  router.all("/v1/clicks", allowOnly("POST"));
  return router;

  /** Keeps the dead letters, and tells what became of each click. Rejects with the database's error. */
  async function settle(sender: string, fates: Fates, { good, letters }: JudgedBatch): Promise<Account> {
    const unstorable = fates.unstorable.map(({ click, sqlstate, detail }) =>
      writeDeadLetter(good.get(click), { reason: "unstorable", sqlstate, detail }),
    );
    const dead = [...letters, ...unstorable];
    const kept = dead.length === 0 ? [] : await options.deadClicks.bury(sender, dead);
    const deadLettered = countBy(dead.filter((_, index) => kept[index]).map(({ reason }) => reason));
    const full = kept.filter((isKept) => !isKept).length;
    if (dead.length > 0) logger.warn("clicks are dead letters", { sender, reasons: deadLettered, noRoomFor: full });
    if (fates.late > 0) logger.warn("clicks came too late", { sender, late: fates.late });
    const { inserted, duplicate, late } = fates;
    return { inserted, duplicate, deadLettered, refused: { late, "dead-letters-full": full } };
  }
}

/** The good clicks with what each came as, and the dead letters of the others. */
type JudgedBatch = { good: Map<Click, unknown>; letters: DeadLetter[] };

function judgeClicks(values: readonly unknown[], now: number): JudgedBatch {
  const good = new Map<Click, unknown>();
  const letters: DeadLetter[] = [];
  for (const value of values) {
    const judged = judgeClick(value, now);
    if ("click" in judged) good.set(judged.click, value);
    else letters.push(judged.letter);
  }
  return { good, letters };
}

function countBy<K extends string>(names: readonly K[]): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function toResult(received: number, { inserted, duplicate, deadLettered, refused }: Account): ClickBatchResult {
  const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, one) => all + one, 0);
  return { received, inserted, duplicate, deadLettered: sum(deadLettered), refused: sum(refused) };
}
