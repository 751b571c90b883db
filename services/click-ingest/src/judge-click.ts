import { Click, Problem } from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";
import { cleanClick, findFault, reasonOfField } from "./domain/click.ts";
import { type DeadLetter, writeDeadLetter } from "./domain/dead-letter.ts";

const checkClick = createValidator(Click);

const DETAILS = {
  "id-time": "the time in the id must be the click's, and not after the next day",
  owner: "must have neither NUL nor a lone surrogate",
  version: "must be a whole number below 2^53",
} as const;

export type Judged = { click: Click } | { letter: DeadLetter };

/**
 * Judges one value of a batch: a click as it will be stored, or a dead letter that says why not.
 * @param now ms since 1970
 */
export function judgeClick(value: unknown, now: number): Judged {
  try {
    const click = checkClick(value);
    const reason = findFault(click, now);
    if (reason === undefined) return { click: cleanClick(click) };
    const detail = DETAILS[reason as keyof typeof DETAILS] ?? "";
    return { letter: writeDeadLetter(value, { reason, sqlstate: null, detail }) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const [fault] = error.errors;
    const reason = fault ? reasonOfField(fault.field, fault.rule) : "shape";
    const detail = fault ? `${fault.field}: ${fault.detail}` : error.message;
    return { letter: writeDeadLetter(value, { reason, sqlstate: null, detail }) };
  }
}
