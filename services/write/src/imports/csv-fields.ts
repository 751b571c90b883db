import { parse } from "csv-parse/sync";

const LF = Buffer.from("\n");

/**
 * Takes records apart into fields.
 * @param records without their line breaks, each in valid UTF-8 and with its quotes in order
 * @returns one list of fields for each record
 */
export function parseFields(records: readonly Buffer[]): string[][] {
  const text = Buffer.concat(records.flatMap((record) => [record, LF]));
  const rows: string[][] = parse(text, { recordDelimiter: "\n", relaxColumnCount: true });
  if (rows.length !== records.length)
    throw new Error("the parser of CSV found another number of records than there are");
  return rows;
}
