// What a call of the API is: the code that serves it, beside everything that the OpenAPI document says of it. The schemas
// are those by which requests are validated, so that the two cannot differ.
import type { Problem, ProblemCode, Scope } from "@linkfence/contracts";
import type { Request, Response } from "express";
import { type Static, type TObject, type TSchema, Type } from "typebox";
import type { Caller } from "./auth.ts";
import { createQueryReader } from "./query.ts";

/**
 * What goes out: `body` as JSON; `text` as it is, JSON unless `type` says otherwise; what `send` writes itself; or a
 * `problem`, where a call came to something before it ended in one.
 */
export type Reply = {
  status: number;
  headers?: Readonly<Record<string, string>>;
  /** Names what was made, for the audit, where no `Location` does. */
  created?: string;
  /** How many links a batch or a file made or revoked, for the audit. */
  count?: number;
} & (
  | { body: unknown }
  | { text: string; type?: string }
  | { send: (response: Response) => void | Promise<void> }
  | { problem: Problem }
);

/** One answer that a call may give. Without a schema it has no content; the media type is JSON unless it says otherwise. */
export type Answer = {
  description: string;
  schema?: TSchema;
  mediaType?: string;
  /** Other forms of the same answer, for who asks for them, by their media type. */
  others?: Readonly<Record<string, TSchema>>;
  /** Header fields beside those of every answer, and what each says. */
  headers?: Readonly<Record<string, string | AnswerField>>;
};

/** A header field that this answer never lacks. */
export type AnswerField = { description: string; always: true };

/** A header field of a request. */
export type RequestField = { description: string; schema: TSchema };

/** What the OpenAPI document says of a call. */
export type Description = {
  /** Unique, in camelCase: generated clients name their functions by it. */
  operationId: string;
  /** One short sentence without a full stop. */
  summary: string;
  description?: string;
  /** The group under which the call is shown. */
  group: string;
  fields?: Readonly<Record<string, RequestField>>;
  /** `optional`: the call may also come without one. */
  body?: { schema: TSchema; mediaTypes: readonly string[]; optional?: true };
  answers: Readonly<Record<number, Answer>>;
  /** What it refuses beside what every call refuses. */
  problems: readonly ProblemCode[];
};

/** One call of the API: what its key must allow (null: anybody may call), what it takes, says of itself, and does. */
export type Call = { query: TObject; describe: Description } & (
  | { scope: Scope; handle: (request: Request, author: Caller) => Promise<Reply> }
  | { scope: null; handle: (request: Request) => Promise<Reply> }
);

export type Method = "get" | "post" | "patch" | "delete";
/** Calls by their path, in Express' notation, and method. */
export type Routes = Record<string, Partial<Record<Method, Call>>>;

const NO_PARAMETERS = Type.Object({}, { additionalProperties: false });

type Definition<Q extends TObject> = {
  scope: Scope;
  /** Parameters of the query; none where it is absent. */
  query?: Q;
  describe: Description;
  handle: (request: Request, author: Caller, query: Static<Q>) => Promise<Reply>;
};

/** Defines a call for those who have a key. Its handler gets the query parameters as the schema lets them pass. */
export function call<Q extends TObject>({ scope, query, describe, handle }: Definition<Q>): Call {
  const readQuery = createQueryReader(query ?? NO_PARAMETERS);
  return {
    scope,
    query: query ?? NO_PARAMETERS,
    describe,
    handle: async (request, author) => handle(request, author, readQuery(request) as Static<Q>),
  };
}

type OpenDefinition = { describe: Description; handle: (request: Request) => Promise<Reply> };

/** Defines a call that needs no key. It has no query parameters. */
export function openCall({ describe, handle }: OpenDefinition): Call {
  const readQuery = createQueryReader(NO_PARAMETERS);
  return {
    scope: null,
    query: NO_PARAMETERS,
    describe,
    async handle(request) {
      readQuery(request);
      return handle(request);
    },
  };
}
