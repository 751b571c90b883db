import type { Json } from "./schemas.ts";

/** One header field of an answer. `always` says that the answer never lacks it. */
export function headerField(description: string, always: boolean): Json {
  return { description, ...(always ? { required: true } : {}), schema: { type: "string" } };
}

/** What every answer carries, by reference. */
export const COMMON_FIELDS: Json = Object.fromEntries(
  ["Cache-Control", "X-Content-Type-Options"].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);

/** What the references lead to. */
export const COMMON_FIELD_COMPONENTS: Json = {
  "Cache-Control": headerField("What may keep the answer; `no-store` unless the call says otherwise", true),
  "X-Content-Type-Options": headerField("`nosniff`: the media type is meant as it is written", true),
};
