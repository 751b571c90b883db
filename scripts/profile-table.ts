// The table of services/redirect/PROFILE.md, as `pnpm bench profile` leaves it among its results.
import { readFileSync } from "node:fs";
import { Type } from "typebox";
import { Check } from "typebox/value";
import { replaceMarked } from "./marked-part.ts";

const resultsSchema = Type.Object({
  subject: Type.Literal("profile"),
  quick: Type.Literal(false),
  tables: Type.Tuple([Type.String({ minLength: 1 })]),
});

/** Reads the table from the results of a run. Throws where they are none of a profile. */
export function readProfile(path: string): string {
  const document: unknown = JSON.parse(readFileSync(path, "utf8"));
  if (!Check(resultsSchema, document)) throw new Error("it is no result file of pnpm bench profile");
  return document.tables[0];
}

/** Replaces the table in the document. Throws where a marker is missing. */
export function withProfile(document: string, table: string): string {
  return replaceMarked(document, "profile", table);
}
