// How one call stands in the document.
import { CODE_PATTERN } from "@linkfence/contracts";
import type { TObject } from "typebox";
import type { Answer, Call } from "../http/call.ts";
import { PAGE_FILES } from "./docs-page.ts";
import { COMMON_FIELDS, headerField } from "./header-fields.ts";
import type { createProblemWriter } from "./problems.ts";
import type { Json, SchemaWriter } from "./schemas.ts";

export type Writers = { schemas: SchemaWriter; problems: ReturnType<typeof createProblemWriter> };

/** The parts of paths that vary, by the path up to them. What a text has to be like is said where that is a promise. */
const PATH_PARAMETERS: Readonly<Record<string, { description: string; schema: Json }>> = {
  "/v1/links/{code}": { description: "Code of a link", schema: { type: "string", pattern: CODE_PATTERN.source } },
  "/v1/keys/{id}": { description: "Id of a key, which is no secret", schema: { type: "string" } },
  "/v1/imports/{id}": { description: "Id of an import", schema: { type: "string", format: "uuid" } },
  "/v1/exports/{id}": { description: "Id of an export", schema: { type: "string", format: "uuid" } },
  "/docs/{file}": { description: "Name of the file", schema: { type: "string", enum: PAGE_FILES } },
};

/** Express' notation of a path in that of OpenAPI: `/v1/links/:code` is `/v1/links/{code}`, `\\:` is a colon. */
export function toOpenApiPath(pattern: string): string {
  return pattern.replaceAll(/(?<!\\):(\w+)/g, "{$1}").replaceAll("\\", "");
}

/** Describes a call. Nothing in it is written by hand but what the call says of itself. */
export function writeOperation(path: string, call: Call, { schemas, problems }: Writers): Json {
  const { operationId, summary, description, group, fields = {}, body, answers } = call.describe;
  const parameters = [
    ...pathParameters(path),
    ...queryParameters(call.query, schemas),
    ...Object.entries(fields).map(([name, { description, schema }]) => ({
      name,
      in: "header",
      description,
      schema: schemas.write(schema),
    })),
  ];
  const given = Object.entries(answers).map(([status, answer]) => [status, writeAnswer(answer, schemas)]);
  return {
    operationId,
    tags: [group],
    summary,
    ...(description === undefined ? {} : { description }),
    security: call.scope === null ? [] : [{ bearer: [call.scope] }],
    ...(call.scope === null ? {} : { "x-required-scope": call.scope }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.optional !== true,
            content: contentOf(body.mediaTypes, schemas.write(body.schema)),
          },
        }),
    responses: { ...Object.fromEntries(given), ...problems.write(call) },
  };
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(({ 0: part, 1: name, index }) => {
    const known = PATH_PARAMETERS[path.slice(0, index + part.length)];
    if (!known) throw new Error(`nothing is known of ${name} in ${path}`);
    return { name, in: "path", required: true, ...known };
  });
}

function queryParameters({ properties, ...rest }: TObject, schemas: SchemaWriter): Json[] {
  const required: readonly string[] = rest.required ?? [];
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = schemas.write(property);
    return {
      name,
      in: "query",
      ...(required.includes(name) ? { required: true } : {}),
      ...(description === undefined ? {} : { description }),
      schema,
    };
  });
}

function writeAnswer(
  { description, schema, mediaType, others = {}, headers = {} }: Answer,
  schemas: SchemaWriter,
): Json {
  const own = Object.entries(headers).map(([name, field]) => [
    name,
    typeof field === "string" ? headerField(field, false) : headerField(field.description, field.always),
  ]);
  const forms = schema === undefined ? [] : [[mediaType ?? "application/json", schema] as const];
  const content = [...forms, ...Object.entries(others)].map(([type, form]) => [type, { schema: schemas.write(form) }]);
  return {
    description,
    headers: { ...COMMON_FIELDS, ...Object.fromEntries(own) },
    ...(content.length > 0 ? { content: Object.fromEntries(content) } : {}),
  };
}

function contentOf(mediaTypes: readonly string[], schema: Json): Json {
  return Object.fromEntries(mediaTypes.map((type) => [type, { schema }]));
}
