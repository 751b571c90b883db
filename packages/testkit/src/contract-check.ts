// Every answer that a test gets of the admin API is held against the committed OpenAPI document: status, media type,
// header fields and content. An answer that the document does not know fails the test that got it.
import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { HttpAnswer } from "./http-client.ts";

const DOCUMENT = new URL("../../../services/write/openapi.json", import.meta.url);

type Field = { $ref?: string; required?: boolean };
type AnswerDescription = {
  $ref?: string;
  headers?: Record<string, Field>;
  content?: Record<string, { schema?: object }>;
};
type Operation = { operationId: string; responses: Record<string, AnswerDescription> };
/** As much of an OpenAPI document as the check reads. */
export type CheckedDocument = {
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas?: Record<string, object>;
    responses?: Record<string, AnswerDescription>;
    headers?: Record<string, Field>;
  };
};
export type ContractCheck = ReturnType<typeof createContractCheck>;

/** What the HTTP server answers by itself, before there is a request that anything could be said of. */
const UNREADABLE = new Set([400, 408, 431]);
/** How much of a body an error repeats. */
const SHOWN = 1000;

/**
 * Creates the check of answers.
 * @param document what they are held against; the committed document unless it says otherwise
 */
export function createContractCheck(document: CheckedDocument = readDocument()) {
  const { components } = document;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats.default(ajv);
  const compiled = new Map<object, ValidateFunction>();
  const paths = Object.entries(document.paths)
    .map(([path, item]) => ({ path, item, fits: fitting(path) }))
    .sort((a, b) => parameterCount(a.path) - parameterCount(b.path));

  function findOperation(method: string, target: string) {
    const path = target.split("?", 1)[0] ?? "";
    const found = paths.find(({ fits }) => fits.test(path));
    const name = method.toLowerCase();
    return {
      known: found !== undefined,
      operation: found?.item[name] ?? (name === "head" ? found?.item.get : undefined),
    };
  }

  function compile(schema: object): ValidateFunction {
    const known = compiled.get(schema);
    if (known) return known;
    const validate = ajv.compile({ allOf: [schema], components });
    compiled.set(schema, validate);
    return validate;
  }

  /** The faults of an answer to a documented call; none where it is as the document says. */
  function faultsOf(operation: Operation, method: string, answer: HttpAnswer): string[] {
    const said = operation.responses[answer.status];
    if (!said) return [`the status ${answer.status} is not documented`];
    const { headers = {}, content } = lookUp(said, components.responses);
    const missing = Object.entries(headers)
      .filter(([name, field]) => lookUp(field, components.headers).required && !(name.toLowerCase() in answer.headers))
      .map(([name]) => `the header field ${name} is missing`);
    return method.toUpperCase() === "HEAD" ? missing : [...missing, ...contentFaults(content, answer)];
  }

  function contentFaults(content: AnswerDescription["content"], { headers, body }: HttpAnswer): string[] {
    const type = (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
    if (!content) return body === "" ? [] : ["it has content, and the document says it has none"];
    const form = Object.entries(content).find(([range]) => isWithin(type, range));
    if (!form) return [`the media type "${type}" is not documented`];
    const schema = form[1].schema;
    if (!schema || !/[/+]json$/.test(type)) return [];
    const validate = compile(schema);
    return validate(parseJson(body)) ? [] : [ajv.errorsText(validate.errors, { dataVar: "body" })];
  }

  /** What no call of the document answers: nothing but the refusals of a path or a method that does not exist. */
  function strangerFaults(known: boolean, method: string, answer: HttpAnswer): string[] {
    const status = known ? 405 : 404;
    if (answer.status !== status) return [`a ${known ? "method" : "path"} that is not documented is not ${status}`];
    const schema = { $ref: "#/components/schemas/ProblemBody" };
    const content = { "application/problem+json": { schema } };
    const allow = known && answer.headers.allow === undefined ? ["the header field Allow is missing"] : [];
    return method.toUpperCase() === "HEAD" ? allow : [...allow, ...contentFaults(content, answer)];
  }

  /**
   * Throws an error that names every fault of an answer.
   * @param method of the request
   * @param target of the request: path and query as they were sent
   */
  function check(method: string, target: string, answer: HttpAnswer): void {
    if (isUnreadableRefusal(answer)) return;
    const { known, operation } = findOperation(method, target);
    const faults = operation ? faultsOf(operation, method, answer) : strangerFaults(known, method, answer);
    if (faults.length === 0) return;
    const shown = `${answer.status} ${JSON.stringify(answer.headers)} ${answer.body.slice(0, SHOWN)}`;
    throw new Error(
      `${method} ${target.slice(0, SHOWN)} (${operation?.operationId ?? "not documented"}) was answered otherwise than ` +
        `the OpenAPI document says: ${faults.join("; ")}\n${shown}`,
    );
  }

  /** Throws an error where a value is not as the document's schema of that name says. */
  function checkPart(name: string, value: unknown): void {
    const validate = compile(lookUp({ $ref: `#/components/schemas/${name}` } as { $ref: string }, components.schemas));
    if (validate(value)) return;
    const shown = JSON.stringify(value)?.slice(0, SHOWN);
    throw new Error(`not a ${name} of the OpenAPI document: ${ajv.errorsText(validate.errors)}\n${shown}`);
  }

  return { check, checkPart, findOperation };
}

/** Reads the document that is committed. */
export function readDocument(): CheckedDocument {
  return JSON.parse(readFileSync(DOCUMENT, "utf8")) as CheckedDocument;
}

let shared: ContractCheck | undefined;

/** The check against the committed document; made at its first use, and once. */
export function sharedContractCheck(): ContractCheck {
  shared ??= createContractCheck();
  return shared;
}

function fitting(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/]+")}$`);
}

function parameterCount(path: string): number {
  return path.split("{").length;
}

function lookUp<T extends { $ref?: string }>(value: T, components: Record<string, T> = {}): T {
  if (value.$ref === undefined) return value;
  const found = components[value.$ref.split("/").at(-1) ?? ""];
  if (!found) throw new Error(`the OpenAPI document refers to ${value.$ref}, which it does not have`);
  return found;
}

/** Whether a media type is the one named, or in the range (`text/*`). */
function isWithin(type: string, range: string): boolean {
  return type === range.toLowerCase() || (range.endsWith("/*") && type.startsWith(range.slice(0, -1)));
}

function isUnreadableRefusal({ status, headers, body }: HttpAnswer): boolean {
  return (
    UNREADABLE.has(status) && body === "" && headers["content-type"] === undefined && headers.connection === "close"
  );
}

/** What is no JSON fits no schema of ours. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
