import { EVERY_ANSWER_FIELDS, KEYED_ANSWER_FIELDS } from "../http/every-call.ts";
import type { Json } from "./schemas.ts";

/** One header field of an answer. `always` says that the answer never lacks it. */
export function headerField(description: string, always: boolean): Json {
  return { description, ...(always ? { required: true } : {}), schema: { type: "string" } };
}

const always = Object.entries(EVERY_ANSWER_FIELDS).map(([name, text]) => [name, headerField(text, true)]);
const keyed = Object.entries(KEYED_ANSWER_FIELDS).map(([name, text]) => [
  name,
  headerField(`${text}. Of calls that need a key, where that limit is set`, false),
]);

/** What the answers carry, whatever they answer. */
export const COMMON_FIELD_COMPONENTS: Json = Object.fromEntries([...always, ...keyed]);

/** The same by reference. */
export const COMMON_FIELDS: Json = Object.fromEntries(
  Object.keys(COMMON_FIELD_COMPONENTS).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);
