// The OpenAPI document of the admin API (version 3.1.1). All of it comes from the table of routes: a call that is routed
// is in it, and what it says of a call is what the call is validated by.
import type { Method, Routes } from "../http/call.ts";
import { COMMON_FIELD_COMPONENTS } from "./header-fields.ts";
import { toOpenApiPath, writeOperation } from "./operations.ts";
import { createProblemWriter, problemTable } from "./problems.ts";
import { createSchemaWriter, type Json } from "./schemas.ts";

export type ApiDocument = { openapi: string; info: Json; paths: Record<string, Json>; components: Json } & Json;

const INTRODUCTION = `Creates links, shows them and takes them back.

Every call but those of this description needs a key, \`Authorization: Bearer <key>\`, that has the scope which the call
names; \`admin\` includes every scope. Bodies are JSON in UTF-8, but for files that are imported. Fields and parameters that
a call does not know are refused. Times are RFC 3339 in UTC with microseconds. What belongs to somebody else is answered like
what does not exist.

Refusals are \`application/problem+json\` (RFC 9457) with a stable \`code\`. A path that does not exist is 404 \`not-found\`,
a method that a path does not have is 405 \`method-not-allowed\` with \`Allow\`; both without a look at the key. What cannot
be read as HTTP at all, or comes too slowly, is answered 400, 408 or 431 without content. HEAD is answered wherever GET is.

A request names its \`Host\` once, and its target is a path. \`X-Request-Id\` of up to 128 plain characters comes back in the
answer and in \`instance\` of a problem; without one the service makes one. Who makes too many calls with a key, or without a
valid one from an address, is answered 429 \`rate-limited\` with \`Retry-After\` before anything of the body is read.

`;

/** Describes every call of a table of routes. */
export function describeApi(routes: Routes): ApiDocument {
  const schemas = createSchemaWriter();
  const writers = { schemas, problems: createProblemWriter(schemas) };
  const paths: Record<string, Json> = {};
  const groups = new Set<string>();
  for (const [pattern, calls] of Object.entries(routes)) {
    const path = toOpenApiPath(pattern);
    const item: Json = {};
    for (const [method, call] of Object.entries(calls) as [Method, NonNullable<(typeof calls)[Method]>][]) {
      item[method] = writeOperation(path, call, writers);
      groups.add(call.describe.group);
    }
    paths[path] = item;
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "linkfence admin API",
      version: "1",
      description: INTRODUCTION + problemTable(),
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...groups].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.components(),
      responses: writers.problems.components(),
      headers: COMMON_FIELD_COMPONENTS,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A key of this service, `linkfence_<id>_<secret>`" },
      },
    },
  };
}

/** The document as it is committed and served. */
export function printDocument(document: ApiDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}
