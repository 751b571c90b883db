import { ChangePage, ListChangesQuery, Problem } from "@linkfence/contracts";
import type { Request } from "express";
import { Type } from "typebox";
import { type ChangeStreams, STREAM_SCOPE } from "../changes/streams.ts";
import { decideLastEventId } from "../domain/change-feed.ts";
import type { ChangeStore } from "../store/changes.ts";
import { call, type Reply, type Routes } from "./call.ts";
import { EVENT_STREAM, prefersStream, STREAM_FIELDS } from "./event-stream.ts";

export type ChangeRouteDeps = { changes: Pick<ChangeStore, "readRange">; streams: Pick<ChangeStreams, "admit"> };

const DEFAULT_LIMIT = 100;
const DESCRIPTION = `Each change of your links: which, when, and by which key; in the order in which they happened. Whoever
goes on after the last \`seq\` that it saw misses nothing. Numbers have gaps. With \`Accept: ${EVENT_STREAM}\` the answer is a
stream of server-sent events that does not end: \`id\` is the \`seq\`, \`event\` the \`type\`, \`data\` the change as JSON. It begins
after \`Last-Event-ID\`, else after the parameter, else with what changes from now on.`;

/** The log of what became of an owner's links: page by page, or as it comes. */
export function changeRoutes({ changes, streams }: ChangeRouteDeps): Routes {
  async function readPage(owner: string, { after = 0, limit = DEFAULT_LIMIT }: ListChangesQuery): Promise<Reply> {
    const found = await changes.readRange({ owner, after, limit: limit + 1 });
    const items = found.slice(0, limit);
    const position = items.at(-1)?.seq ?? after;
    const body: ChangePage = { items, next: found.length > limit ? position : null, position };
    return { status: 200, body };
  }

  const listChanges = call({
    scope: STREAM_SCOPE,
    query: ListChangesQuery,
    describe: {
      operationId: "listChanges",
      summary: "Read or follow what became of your links",
      description: DESCRIPTION.replaceAll("\n", " "),
      group: "Revocation",
      fields: {
        "Last-Event-ID": {
          description: "Where a stream goes on: the `id` of the last event that was seen. It wins over `after`",
          schema: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        },
      },
      answers: {
        200: {
          description: "One page of changes; or the stream",
          schema: ChangePage,
          others: { [EVENT_STREAM]: Type.String() },
        },
      },
      problems: [],
    },
    async handle(request, author, query) {
      request.res?.vary("Accept");
      const position = lastEventOf(request);
      if (!prefersStream(request)) return readPage(author.owner, query);
      refuseLimit(query);
      const start = position ?? query.after ?? null;
      if (request.method === "HEAD")
        return { status: 200, headers: STREAM_FIELDS, send: (response) => void response.end() };
      return { status: 200, headers: STREAM_FIELDS, send: await streams.admit(author, start) };
    },
  });

  return { "/v1/changes": { get: listChanges } };
}

function refuseLimit({ limit }: ListChangesQuery): void {
  if (limit === undefined) return;
  const detail = "has no meaning for a stream, which goes on for as long as it is read";
  throw new Problem("invalid-request", `the query parameter limit ${detail}`, [
    { field: "limit", rule: "stream", detail },
  ]);
}

/**
 * The last event that a reader has seen. A page does without it, but who sends one that cannot be one has lost its place,
 * whatever form it asks for. Throws a Problem (400) that names field and rule.
 */
function lastEventOf(request: Request): number | null {
  const decision = decideLastEventId(request.headersDistinct["last-event-id"] ?? []);
  if (decision.ok) return decision.position;
  const { fault } = decision;
  throw new Problem("invalid-request", `the header field ${fault.field} ${fault.detail}`, [fault]);
}
