// Whether the document allows a request, decided from the document alone and by another validator than the service's own
// code path, so that the two can be compared.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { FuzzRequest } from "./fuzz-requests.fixture.ts";
import { document, type JsonSchema, type Operation, type Parameter, resolve } from "./operations.fixture.ts";

/** Creates the judge of single values: whether a schema of the document lets one pass. */
export function createSchemaJudge() {
  const ajv = new Ajv2020({ strict: false, validateSchema: false });
  addFormats.default(ajv);
  const compiled = new Map<string, ValidateFunction>();
  const components = loosen(document.components);

  return function fits(schema: JsonSchema, value: unknown): boolean {
    const text = JSON.stringify(schema);
    const validate = compiled.get(text) ?? ajv.compile({ allOf: [loosen(schema)], components });
    compiled.set(text, validate);
    return validate(value);
  };
}

/** Creates the judge of requests. */
export function createJudge() {
  const fits = createSchemaJudge();

  function pathFaults({ parameters }: Operation, { params }: FuzzRequest): string[] {
    return parameters
      .filter(({ in: place, name, schema }) => place === "path" && !fits(schema, params[name]))
      .map(said);
  }

  function queryFaults(operation: Operation, target: string): string[] {
    const known = operation.parameters.filter((parameter) => parameter.in === "query");
    const given = readQuery(target.split("?").slice(1).join("?"));
    if (!given) return ["query: not percent-encoded UTF-8"];
    const names = given.map(([name]) => name);
    const strange = names.filter((name) => !known.some((parameter) => parameter.name === name));
    const repeated = names.filter((name, at) => names.indexOf(name) !== at);
    const wrong = known.filter((parameter) => {
      const value = given.find(([name]) => name === parameter.name)?.[1];
      return value === undefined
        ? parameter.required === true
        : !fits(parameter.schema, asTyped(value, parameter.schema));
    });
    return [
      ...strange.map((name) => `query: ${name} unknown`),
      ...repeated.map((name) => `query: ${name} repeated`),
      ...wrong.map(said),
    ];
  }

  /** A field in quotes is a structured text, of which the schema speaks without them (RFC 9651 section 3.3.3). */
  function fieldFaults({ parameters }: Operation, { headers }: FuzzRequest): string[] {
    return parameters
      .filter(({ in: place, name, schema }) => {
        const value = headers[name]?.trim();
        return (
          place === "header" && value !== undefined && !value.startsWith('"') && !fits(schema, asTyped(value, schema))
        );
      })
      .map(said);
  }

  function bodyFaults({ bodies, bodyIsOptional }: Operation, { headers, body }: FuzzRequest): string[] {
    if (!bodies || (bodyIsOptional && (body ?? "").length === 0)) return [];
    const [type = "", ...rest] = (headers["Content-Type"] ?? "")
      .toLowerCase()
      .split(";")
      .map((part) => part.trim());
    const form = bodies[type];
    if (!form || rest.some((part) => part.startsWith("charset=") && part !== "charset=utf-8"))
      return ["body: media type"];
    if ((headers["Content-Encoding"] ?? "identity") !== "identity") return ["body: encoding"];
    if (!/[/+]json$/.test(type)) return [];
    const value = readJson(body ?? new Uint8Array());
    return value !== undefined && fits(form.schema, value) ? [] : ["body: schema"];
  }

  return {
    /** Why the document does not allow a request; nothing where it does. */
    faultsOf: (operation: Operation, request: FuzzRequest): string[] => [
      ...pathFaults(operation, request),
      ...queryFaults(operation, request.target),
      ...fieldFaults(operation, request),
      ...bodyFaults(operation, request),
    ],
    /** Which items of a batch the document does not allow, although the answer says of each that it was carried out. */
    itemFaults({ bodies }: Operation, { body }: FuzzRequest, answer: unknown): string[] {
      const properties = Object.entries(resolve(bodies?.["application/json"]?.schema ?? {}).properties ?? {});
      const given = readJson(body ?? new Uint8Array()) as Record<string, unknown[]> | undefined;
      const { results = [] } = (answer ?? {}) as { results?: { status: number }[] };
      return (properties as [string, JsonSchema][])
        .filter(([, schema]) => JUDGED_ALONE in schema)
        .flatMap(([name, { items }]) =>
          results.flatMap(({ status }, at) =>
            status < 300 && !fits(items as JsonSchema, given?.[name]?.[at]) ? [`body: ${name}[${at}]`] : [],
          ),
        );
    },
  };
}

const JUDGED_ALONE = "x-judged-one-by-one";

function said({ in: place, name }: Parameter): string {
  return `${place}: ${name}`;
}

/** Items that are judged one by one, as the document says, do not make the whole request wrong. */
function loosen<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) =>
    typeof value === "object" && value !== null && JUDGED_ALONE in value ? { ...value, items: {} } : value,
  ) as T;
}

/** The pairs of a query; undefined where it is misencoded. */
function readQuery(query: string): [string, string][] | undefined {
  try {
    return query
      .split("&")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const [name = "", ...value] = pair.replaceAll("+", " ").split("=").map(decodeURIComponent);
        return [name, value.join("=")];
      });
  } catch {
    return undefined;
  }
}

/** Query parameters and header fields are texts; a number is one that is written plainly. */
function asTyped(value: string, { type }: JsonSchema): unknown {
  const numeric = type === "integer" ? /^-?\d+$/ : type === "number" ? /^-?\d+(\.\d+)?$/ : null;
  return numeric?.test(value) ? Number(value) : value;
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
