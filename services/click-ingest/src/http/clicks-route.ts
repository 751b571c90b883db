// POST /v1/clicks. Each click is judged on its own; the good ones are queued, and the answer waits for their commit and for
// that of the dead letters. A batch that cannot be stored now is answered 503 whole: its sender keeps it and sends it
// again, with the same ids.
import { type Click, ClickBatch, type ClickBatchResult, Problem } from "@linkfence/contracts";
import { createValidator, type Logger } from "@linkfence/service-shell";
import { type RequestHandler, Router } from "express";
import { isPlausible, type RefusalReason } from "../domain/click.ts";
import { type DeadLetter, writePayload } from "../domain/dead-letter.ts";
import { judgeClick } from "../judge-click.ts";
import type { DropReports } from "../queue/drop-reports.ts";
import type { Intake } from "../queue/intake.ts";
import type { Account, GivenBackReason, Ledger } from "../queue/ledger.ts";
import type { Fates, Outcome } from "../queue/submission.ts";
import type { DeadClicks } from "../store/dead-clicks.ts";
import type { Refusal, Refusals } from "../store/refusals.ts";
import { allowOnly } from "./allow-only.ts";

export type ClicksRouteOptions = {
  intake: Pick<Intake, "offer">;
  deadClicks: Pick<DeadClicks, "bury">;
  refusals: Pick<Refusals, "note">;
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
  unburied: () =>
    new Problem("unavailable", "what cannot be stored could not be written down now; send the batch again later"),
  abandoned: () => new Problem("unavailable", "the connection ended before the clicks were stored"),
};
const NOTHING_TO_STORE = { kind: "stored", inserted: 0, duplicate: 0, buried: 0, late: [], noRoom: [] } as const;

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
    const payloadOf = (click: Click) => writePayload(judged.good.get(click));
    const outcome: Outcome =
      good.length > 0 ? await intake.offer(good, gone.signal, { sender, payloadOf }) : NOTHING_TO_STORE;
    if (outcome.kind === "given-back") throw giveBack(outcome.reason);
    const account = await settle(sender, outcome, { payloadOf, letters: judged.letters }).catch((error: unknown) => {
      logger.warn("dead letters, or what was refused, cannot be written down", { sender, error });
      throw giveBack("unburied");
    });
    if (dropped) drops.take(dropped);
    ledger.answer(account);
    response.json(toResult(clicks.length, account));
  });
  router.all("/v1/clicks", allowOnly("POST"));
  return router;

  /**
   * Keeps the dead letters, counts what is refused, and tells what became of each click. Rejects with the database's error:
   * a batch is answered only when its losses are written down, too.
   */
  async function settle(sender: string, fates: Fates, { payloadOf, letters }: Losses): Promise<Account> {
    const kept =
      letters.length === 0
        ? []
        : await options.deadClicks.bury(
            sender,
            letters.map(({ letter }) => letter),
          );
    const dead = countBy(letters.filter((_, index) => kept[index]).map(({ letter }) => letter.reason));
    const deadLettered = fates.buried === 0 ? dead : { ...dead, unstorable: fates.buried };
    const of = (reason: RefusalReason) => (click: Click) => ({ reason, payload: payloadOf(click), at: click.at });
    const full: Refusal[] = letters
      .filter((_, index) => !kept[index])
      .map(({ letter, at }) => ({ reason: "dead-letters-full", payload: letter.payload, at }));
    const refused = [...fates.late.map(of("late")), ...fates.noRoom.map(of("dead-letters-full")), ...full];
    if (refused.length > 0) await options.refusals.note(refused);
    const noRoomFor = fates.noRoom.length + full.length;
    const late = fates.late.length;
    if (letters.length + fates.buried + noRoomFor > 0)
      logger.warn("clicks are dead letters", { sender, reasons: deadLettered, noRoomFor });
    if (late > 0) logger.warn("clicks came too late", { sender, late });
    const { inserted, duplicate } = fates;
    return { inserted, duplicate, deadLettered, refused: { late, "dead-letters-full": noRoomFor } };
  }
}

/** A dead letter, and when the click was, in ms since 1970; now, where it says nothing that can be. */
type DatedLetter = { letter: DeadLetter; at: number };
/** The good clicks with what each came as, and the dead letters of the others. */
type JudgedBatch = { good: Map<Click, unknown>; letters: DatedLetter[] };
type Losses = { payloadOf: (click: Click) => string; letters: readonly DatedLetter[] };

function judgeClicks(values: readonly unknown[], now: number): JudgedBatch {
  const good = new Map<Click, unknown>();
  const letters: DatedLetter[] = [];
  for (const value of values) {
    const judged = judgeClick(value, now);
    if ("click" in judged) good.set(judged.click, value);
    else letters.push({ letter: judged.letter, at: timeOf(value, now) });
  }
  return { good, letters };
}

function timeOf(value: unknown, now: number): number {
  const at = typeof value === "object" && value !== null && "at" in value ? value.at : undefined;
  return isPlausible(at, now) ? at : now;
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
