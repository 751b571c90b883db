/** The word that stands for all values beyond those that a day can tell apart, behind the tildes that make it a value. */
const ESCAPED = /^~+other$/;

/** A value as it was before the database kept it apart from the rest: one tilde less in front of that word. */
export function readValue(stored: string): string {
  return ESCAPED.test(stored) ? stored.slice(1) : stored;
}
