// What clicks add to the roll-ups, as parameters of `store_counted_clicks`: one array a column, as a literal.
import type { Click } from "@linkfence/contracts";
import { arrayLiteral } from "@linkfence/db";
import { classify } from "../domain/classify.ts";
import { countClicks, countDays, writePeople } from "../domain/roll-ups.ts";

/** Days, hours and owners, each with its counters. */
export function toRollUpColumns(clicks: readonly Click[]) {
  const counted = countClicks(clicks, clicks.map(classify));
  const { hours, owners } = counted;
  const days = countDays(counted);
  const people = hours.map(writePeople);
  return {
    dayCodes: arrayLiteral(days.map(({ code }) => code)),
    days: arrayLiteral(days.map(({ day }) => day)),
    dayPeople: arrayLiteral(days.map(({ people }) => people)),
    hourCodes: arrayLiteral(hours.map(({ code }) => code)),
    hours: arrayLiteral(hours.map(({ hour }) => hour)),
    hourOwners: arrayLiteral(hours.map(({ owner }) => owner)),
    hourCounts: countersLiteral(hours),
    hourCells: arrayLiteral(people.map(({ cells }) => cells)),
    hourRecent: arrayLiteral(people.map(({ recent }) => recent)),
    hourlyOwners: arrayLiteral(owners.map(({ owner }) => owner)),
    ownerHours: arrayLiteral(owners.map(({ hour }) => hour)),
    ownerCounts: countersLiteral(owners),
  };
}

/** An array of arrays, all of one length (PostgreSQL manual, section 8.15.2). */
const countersLiteral = (rows: readonly { counts: readonly number[] }[]): string =>
  `{${rows.map(({ counts }) => `{${counts.join()}}`).join()}}`;
