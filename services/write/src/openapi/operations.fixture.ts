// The committed document as the tests go through it: one entry for each operation.
import { readFileSync } from "node:fs";

export type JsonSchema = { $ref?: string; [keyword: string]: unknown };
export type Parameter = { name: string; in: "path" | "query" | "header"; required?: boolean; schema: JsonSchema };
export type Operation = {
  operationId: string;
  method: string;
  path: string;
  /** Null where everybody may call. */
  scope: string | null;
  parameters: readonly Parameter[];
  /** Bodies that it takes, by media type; null where it takes none. */
  bodies: Readonly<Record<string, { schema: JsonSchema }>> | null;
  /** Whether it can be called without one. */
  bodyIsOptional: boolean;
  /** Statuses of success. */
  successes: readonly number[];
  /** Media types of what it answers then. */
  mediaTypes: readonly string[];
};

type Written = {
  operationId: string;
  "x-required-scope"?: string;
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { content?: Record<string, unknown> }>;
};
type Document = { paths: Record<string, Record<string, Written>>; components: { schemas: Record<string, JsonSchema> } };

export const document = JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8")) as Document;

export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, written]) => ({
    operationId: written.operationId,
    method: method.toUpperCase(),
    path,
    scope: written["x-required-scope"] ?? null,
    parameters: written.parameters ?? [],
    bodies: written.requestBody?.content ?? null,
    bodyIsOptional: written.requestBody?.required !== true,
    ...successesOf(written),
  })),
);

function successesOf({ responses }: Written) {
  const good = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  return {
    successes: good.map(([status]) => Number(status)),
    mediaTypes: [...new Set(good.flatMap(([, { content = {} }]) => Object.keys(content)))],
  };
}

/** What a schema says, where it only refers to one that has a name. */
export function resolve(schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (document.components.schemas[name] ?? {});
}

/** An operation's path with its parameters filled in, each percent-encoded. */
export function fillPath({ path }: Operation, fill: (name: string) => string): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(fill(name)));
}
