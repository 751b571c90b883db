import { type FieldFault, Problem } from "@linkfence/contracts";
import { Ajv, type ErrorObject } from "ajv";
import type { Static, TSchema } from "typebox";

/** An unknown field's name comes from the caller: as much of it as a person needs is repeated. */
const NAME_MAX = 100;

// What a time or an address means is decided by the domain rules; the formats are there for readers of the schema.
const formats = { "date-time": true, uri: true } as const;
// The schemas are the services' own, and the compiler of types has judged them: judging them once more delays each start.
// `verbose` hands the schema on that was broken, for the range that a number must be in.
const ajv = new Ajv({ allErrors: false, strict: false, validateSchema: false, formats, verbose: true });

/**
 * Compiles a check of what came from outside. The check returns the value, typed, or throws a Problem
 * `invalid-request` that names the field and the rule. Nothing is coerced, filled in or removed.
 * @param schema JSON schema; unknown fields are refused where it says so
 */
export function createValidator<T extends TSchema>(schema: T): (value: unknown, prefix?: string) => Static<T> {
  const validate = ajv.compile<Static<T>>(schema);
  return (value, prefix = "") => {
    if (validate(value)) return value;
    const faults = faultsOf(validate.errors ?? [], prefix);
    throw new Problem("invalid-request", faults.map((fault) => `${fault.field}: ${fault.detail}`).join("; "), faults);
  };
}

function faultsOf(errors: readonly ErrorObject[], prefix: string): FieldFault[] {
  // A union reports each of its arms; the first complaint that is not about the union itself is the useful one.
  const error = errors.find(({ keyword }) => keyword !== "anyOf") ?? errors[0];
  if (!error) return [];
  const parts = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  // These two complain about the object and name the field beside it, unescaped.
  const named: unknown = error.params.additionalProperty ?? error.params.missingProperty;
  if (typeof named === "string") parts.push(named);
  const path = parts.reduce((before, part) => appendPart(before, part.slice(0, NAME_MAX)), prefix);
  return [{ field: path === "" ? "body" : path, rule: error.keyword, detail: detailOf(error) }];
}

/** `links` and `3` make `links[3]`, and that with `target` makes `links[3].target`. */
function appendPart(path: string, part: string): string {
  if (/^\d+$/.test(part)) return `${path}[${part}]`;
  return path === "" ? part : `${path}.${part}`;
}

function detailOf(error: ErrorObject): string {
  if (error.keyword === "additionalProperties") return "is not a field of this call";
  if (error.keyword === "required") return "is required";
  if (error.keyword === "enum") return `must be one of ${error.params.allowedValues.join(", ")}`;
  return rangeOf(error) ?? error.message ?? "is not valid";
}

/** What a whole number between two bounds must be, whichever of these rules it breaks. */
function rangeOf({ keyword, parentSchema }: ErrorObject): string | undefined {
  if (!["type", "minimum", "maximum"].includes(keyword) || parentSchema?.type !== "integer") return undefined;
  const { minimum, maximum } = parentSchema;
  if (minimum === undefined || maximum === undefined) return undefined;
  return `must be a whole number from ${minimum} to ${maximum}`;
}
