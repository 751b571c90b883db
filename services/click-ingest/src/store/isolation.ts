// Parts clicks that the database refuses from those that it takes. Each call is a few transactions that settle some of the
// clicks for good, and takes little time, so that others can be stored in between.
import type { Click } from "@linkfence/contracts";
import { arrayLiteral, type Database, errorCode } from "@linkfence/db";
import { dayOf } from "../domain/click.ts";
import { writeRefusal } from "../domain/dead-letter.ts";
import { DATA_CLASSES, judgeFailure } from "../domain/failure.ts";
import type { Fate, Isolated, Suspect } from "../queue/suspects.ts";
import { toColumns } from "./click-columns.ts";
import type { ClickDays } from "./click-days.ts";
import { DATETIME_OVERFLOW, NO_DAY } from "./clicks.ts";
import type { DeadClicks } from "./dead-clicks.ts";

export type IsolationOptions = {
  database: Database;
  days: Pick<ClickDays, "open" | "forget">;
  deadClicks: Pick<DeadClicks, "bury" | "buryAgain" | "stats" | "noteSize">;
  valuesMax: number;
  /** Classes of SQLSTATE that judge the data. */
  dataClasses?: ReadonlySet<string>;
  /** How long one transaction goes on before it ends with what it has, in ms. */
  budgetMs: number;
  /** Deadline of its call, in ms. */
  timeoutMs: number;
};
type Answer = { fates: Fate[]; sqlstates: (string | null)[]; row_count: number | null; byte_count: number | null };

/** Creates the function. It rejects with the database's error, and what was settled by then stays so. */
export function createIsolation(options: IsolationOptions) {
  const { database, days, deadClicks, valuesMax, budgetMs, timeoutMs, dataClasses = DATA_CLASSES } = options;

  /**
   * Settles at least one of some clicks of a sender: those that were refused before, those of days that are no longer, and as
   * many of the others as there is time for.
   */
  return async (sender: string, suspects: readonly Suspect[]): Promise<Isolated> => {
    const settled: Isolated = new Map();
    const again = await deadClicks.buryAgain(
      sender,
      suspects.map(({ payload }) => payload),
    );
    const rest = suspects.filter((suspect, index) => {
      if (again[index]) settled.set(suspect, { fate: "buried", sqlstate: null });
      return !again[index];
    });
    const states = await days.open(new Set(rest.map(({ click }) => dayOf(click.at))));
    const timely: Suspect[] = [];
    for (const suspect of rest) {
      const state = states.get(dayOf(suspect.click.at));
      if (state === "late") settled.set(suspect, { fate: "late", sqlstate: null });
      else if (state === "open") timely.push(suspect);
      else await buryAlone(sender, suspect, { code: DATETIME_OVERFLOW, detail: "the day is not made yet" }, settled);
    }
    if (timely.length > 0) await part(sender, timely, settled);
    return settled;
  };

  /** What cannot even be sent to the database as a parameter is looked for by halves: no click that was judged is so. */
  async function part(sender: string, suspects: readonly Suspect[], settled: Isolated): Promise<void> {
    try {
      const { fates, sqlstates } = await callIsolate(sender, suspects);
      for (const [index, fate] of fates.entries()) {
        const suspect = suspects[index];
        if (suspect) settled.set(suspect, { fate, sqlstate: sqlstates[index] ?? null });
      }
    } catch (error) {
      const code = errorCode(error);
      if (code === NO_DAY) days.forget();
      if (judgeFailure(code) !== "poison") throw error;
      const [first] = suspects;
      if (first === undefined) throw error;
      if (suspects.length > 1) return part(sender, suspects.slice(0, Math.ceil(suspects.length / 2)), settled);
      await buryAlone(sender, first, { code, detail: error instanceof Error ? error.message : "" }, settled);
    }
  }

  async function callIsolate(sender: string, suspects: readonly Suspect[]): Promise<Answer> {
    const { rowsMax, bytesMax } = deadClicks.stats();
    const columns = toColumns(suspects.map(({ click }): Click => click));
    const payloads = arrayLiteral(suspects.map(({ payload }) => payload));
    const [answer] = await database.run(
      (sql) => sql<Answer[]>`
        SELECT fates, sqlstates, row_count, byte_count
          FROM isolate_clicks(${columns.ids}, ${columns.versions}, ${columns.times}, ${columns.codes}, ${columns.owners},
                              ${columns.referrers}, ${columns.browsers}, ${columns.systems}, ${columns.devices},
                              ${columns.countries}, ${columns.bots}, ${columns.prefetches}, ${payloads}, ${valuesMax},
                              ${sender}, ${rowsMax}, ${bytesMax}, ${arrayLiteral([...dataClasses])}, ${budgetMs})`,
      timeoutMs,
    );
    if (answer === undefined || answer.fates.length === 0) throw new Error("the database settled nothing");
    const { row_count: rows, byte_count: bytes } = answer;
    if (rows !== null && bytes !== null) deadClicks.noteSize({ rows, bytes });
    return answer;
  }

  async function buryAlone(
    sender: string,
    suspect: Suspect,
    { code, detail }: { code: string; detail: string },
    settled: Isolated,
  ): Promise<void> {
    const [kept] = await deadClicks.bury(sender, [writeRefusal(suspect, code, detail)]);
    settled.set(suspect, { fate: kept ? "buried" : "no-room", sqlstate: code });
  }
}
