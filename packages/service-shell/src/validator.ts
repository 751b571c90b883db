import { type FieldFault, Problem } from "@linkfence/contracts";
import { Ajv, type ErrorObject } from "ajv";
import type { Static, TSchema } from "typebox";

const ajv = new Ajv({ allErrors: false, strict: false });

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
  const inside = error.keyword === "additionalProperties" ? `/${String(error.params.additionalProperty)}` : "";
  const missing = error.keyword === "required" ? `/${String(error.params.missingProperty)}` : "";
  const path = `${error.instancePath}${inside}${missing}`
    .split("/")
    .slice(1)
    .map((part) => part.slice(0, 100).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce(
      (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}${path === "" ? "" : "."}${part}`),
      prefix,
    );
  return [{ field: path === "" ? "body" : path, rule: error.keyword, detail: detailOf(error) }];
}

function detailOf(error: ErrorObject): string {
  if (error.keyword === "additionalProperties") return "is not a field of this call";
  if (error.keyword === "required") return "is required";
  return error.message ?? "is not valid";
}
