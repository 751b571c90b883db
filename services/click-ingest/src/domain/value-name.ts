/** The word that stands for all values beyond those that a day can tell apart, behind the tildes that make it a value. */
const ESCAPED = /^~+other$/;

/** A value as it was before the database kept it apart from the rest: one tilde less in front of that word. */
export function readValue(stored: string): string {
  return ESCAPED.test(stored) ? stored.slice(1) : stored;
}

/** What a cell of `click_hour` cannot hold as it is: that word, and what parts values and lines. */
const REST = /^~*other$/;
const PARTING = /[\t\n\\]/;
const IN_CELLS: Readonly<Record<string, string>> = { "\\": "\\b", "\t": "\\t", "\n": "\\n" };

/** A value as the database keeps it among others: apart from the rest, and without what parts values and lines. */
export function cellValue(value: string): string {
  if (value.endsWith("other") && REST.test(value)) return `~${value}`;
  return PARTING.test(value) ? value.replace(/[\t\n\\]/g, (letter) => IN_CELLS[letter] ?? letter) : value;
}
