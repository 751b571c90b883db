import { cleanText, type DeathReason } from "./click.ts";

/** A click that cannot be stored, with all that an operator needs to judge it. */
export type DeadLetter = {
  /** What it says its id is, as far as that is a text. */
  clickId: string | null;
  reason: DeathReason;
  /** What the database said, where it was the one to refuse it. */
  sqlstate: string | null;
  /** One sentence about what is wrong. */
  detail: string;
  /** The click as it came, as JSON. */
  payload: string;
};

/** Twice the length of a UUID: enough to know one by that was sent with too much around it. */
const ID_MAX = 72;
/** A message of the database repeats the value it refuses, which can be long. */
const DETAIL_MAX = 500;

/**
 * Writes a dead letter.
 * @param raw the click as it came, out of a JSON body. JSON again, it has no NUL and no lone surrogate that is not escaped
 */
export function writeDeadLetter(raw: unknown, about: Omit<DeadLetter, "clickId" | "payload">): DeadLetter {
  const id = typeof raw === "object" && raw !== null && "id" in raw && typeof raw.id === "string" ? raw.id : null;
  return {
    ...about,
    clickId: id === null ? null : cleanText(id.slice(0, ID_MAX)),
    detail: cleanText(about.detail.slice(0, DETAIL_MAX)),
    payload: writePayload(raw),
  };
}

/** Writes the dead letter of a click that the database refused. `payload`: the click as it came, as JSON. */
export function writeRefusal(
  { click, payload }: { click: { id: string }; payload: string },
  sqlstate: string,
  detail: string,
): DeadLetter {
  const about = { reason: "unstorable", sqlstate, detail: cleanText(detail.slice(0, DETAIL_MAX)) } as const;
  return { ...about, clickId: cleanText(click.id.slice(0, ID_MAX)), payload };
}

/** What is nested deeper than anybody can write again is kept as a sentence about it: its neighbours are not at fault. */
export function writePayload(raw: unknown): string {
  try {
    return JSON.stringify(raw);
  } catch (error) {
    if (error instanceof RangeError) return JSON.stringify("a value that is nested too deeply to be kept");
    throw error;
  }
}
