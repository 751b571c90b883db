// Schemas that have a name in the contracts stand once, under that name, in the document's components; all the others
// stand where they are used. A schema is known by its content: TypeBox copies what it makes optional.
import * as contracts from "@linkfence/contracts";
import type { TSchema } from "typebox";

/** A part of the document, as it is written to JSON. */
export type Json = { [name: string]: unknown };

export type SchemaWriter = ReturnType<typeof createSchemaWriter>;

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(contracts)
    .filter(([, value]) => isSchema(value))
    .map(([name, schema]) => [JSON.stringify(schema), name]),
);

/** Creates the writer of a document's schemas. It keeps those that it referred to. */
export function createSchemaWriter() {
  const components: Json = {};

  /** Copies a schema, and puts a reference for each part of it that has a name. */
  function write(schema: TSchema): Json {
    return convert(JSON.parse(JSON.stringify(schema))) as Json;
  }

  function convert(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(convert);
    if (typeof value !== "object" || value === null) return value;
    const name = NAMES.get(JSON.stringify(value));
    if (name === undefined) return convertMembers(value);
    if (!Object.hasOwn(components, name)) {
      components[name] = {};
      components[name] = convertMembers(value);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function convertMembers(value: object): Json {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, convert(part)]));
  }

  return { write, components: () => sortByName(components) };
}

/** The same members, in the order of their names. */
export function sortByName(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isSchema(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof RegExp) return false;
  return ("type" in value && typeof value.type === "string") || "anyOf" in value || "enum" in value;
}
