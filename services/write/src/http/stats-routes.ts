import {
  ClickPage,
  type FieldFault,
  LinkStats,
  type LinkSums,
  ListClicksQuery,
  type LiveCounts,
  OwnerStats,
  Problem,
  STATS_LATEST,
  StatsQuery,
} from "@linkfence/contracts";
import { Type } from "typebox";
import { describeLinkStats, describeOwnerStats } from "../domain/stats-answer.ts";
import { decidePeriod, decideStart, type Period } from "../domain/stats-period.ts";
import { formatLocal, type TimeZone } from "../domain/time-zone.ts";
import { LIVE_SCOPE, type LiveCountsStreams, type LiveWish } from "../live/live-counts.ts";
import type { Statistics } from "../statistics.ts";
import type { ClickListing } from "../store/click-listing.ts";
import type { LinkStore } from "../store/links.ts";
import { type Call, call, type Routes } from "./call.ts";
import { EVENT_STREAM, prefersStream, STREAM_FIELDS, takesStreamAlone } from "./event-stream.ts";
import { findLink } from "./links-routes.ts";
import { PAGE_FIELDS, replyWithPage } from "./page-reply.ts";

export type StatsRouteDeps = {
  links: LinkStore;
  statistics: Statistics;
  clickListing: ClickListing;
  live: Pick<LiveCountsStreams, "admit">;
  /** ms since 1970. */
  now: () => number;
};

/** Where the counts of a stream begin, in ms since 1970, and the zone in which that is told. */
type Start = { zone: TimeZone; from: number };

const CLICKS_DEFAULT = 100;
/** Where a period ends that has no end: clicks of the next instant are in it, too. */
const NEVER = Date.parse(STATS_LATEST);
const PERIOD_DESCRIPTION =
  `Of the last 30 days by day, unless the parameters say otherwise. \`total\` is people: whatever says
of itself that it is a crawler, a previewer or a monitor is counted under \`bots\`, what a browser fetched ahead under
\`prefetches\`. Hours and days are those of the time zone, also where its clocks change. A click is counted within a second or
two; \`dropped\` tells of those that never will be.`.replaceAll("\n", " ");
const LIVE_DESCRIPTION =
  ` With \`Accept: ${EVENT_STREAM}\` the answer is a stream of server-sent events that does not end: each
event \`counts\` has \`code\`, \`from\`, \`total\`, \`bots\` and \`prefetches\` as they are by then; one comes at once, and one
whenever they have changed. \`from\` may be as long ago as one likes; \`to\` and \`interval\` are refused.`.replaceAll(
    "\n",
    " ",
  );

const NO_STREAM = "counts of all your links do not come as a stream: follow those of a link, at its /stats";
const NO_STREAM_DESCRIPTION = ` There is no stream of them: who takes \`${EVENT_STREAM}\` alone is answered 406.`;

/** The calls that tell what was counted. */
export function statsRoutes(deps: StatsRouteDeps): Routes {
  return {
    "/v1/links/:code/stats": { get: linkStats(deps) },
    "/v1/links/:code/clicks": { get: listClicks(deps) },
    "/v1/stats": { get: ownerStats(deps) },
  };
}

function linkStats({ links, statistics, live, now }: StatsRouteDeps): Call {
  return call({
    scope: LIVE_SCOPE,
    query: StatsQuery,
    describe: {
      operationId: "getLinkStats",
      summary: "Show or follow how often a link was followed",
      description: PERIOD_DESCRIPTION + LIVE_DESCRIPTION,
      group: "Statistics",
      answers: {
        200: { description: "The counts; or the stream", schema: LinkStats, others: { [EVENT_STREAM]: Type.String() } },
      },
      problems: ["not-found", "statistics-unavailable"],
    },
    async handle(request, author, query) {
      request.res?.vary("Accept");
      if (!prefersStream(request)) {
        const period = periodOf(query, now());
        const { code } = await findLink(links, request, author.owner);
        return { status: 200, body: describeLinkStats(period, await statistics.readLink(code, period.edges)) };
      }
      const start = startOf(query, now());
      const { code } = await findLink(links, request, author.owner);
      if (request.method === "HEAD")
        return { status: 200, headers: STREAM_FIELDS, send: (response) => void response.end() };
      return { status: 200, headers: STREAM_FIELDS, send: await live.admit(author, wishOf(code, start)) };
    },
  });
}

function ownerStats({ statistics, now }: StatsRouteDeps): Call {
  return call({
    scope: "stats:read",
    query: StatsQuery,
    describe: {
      operationId: "getStats",
      summary: "Show how often your links were followed",
      description: PERIOD_DESCRIPTION + NO_STREAM_DESCRIPTION,
      group: "Statistics",
      answers: { 200: { description: "The counts", schema: OwnerStats } },
      problems: ["not-acceptable", "statistics-unavailable"],
    },
    async handle(request, { owner }, query) {
      request.res?.vary("Accept");
      if (takesStreamAlone(request)) throw new Problem("not-acceptable", NO_STREAM);
      const period = periodOf(query, now());
      return { status: 200, body: describeOwnerStats(period, await statistics.readOwner(owner, period.edges)) };
    },
  });
}

function listClicks({ links, clickListing }: StatsRouteDeps): Call {
  return call({
    scope: "stats:read",
    query: ListClicksQuery,
    describe: {
      operationId: "listClicks",
      summary: "List the clicks of a link, newest first",
      description:
        "For as long as single clicks are kept; the counts stay. Those of bots and prefetches are among them. No address is kept of anybody.",
      group: "Statistics",
      answers: { 200: { description: "One page of clicks", schema: ClickPage, headers: PAGE_FIELDS } },
      problems: ["not-found", "invalid-cursor", "statistics-unavailable"],
    },
    async handle(request, { owner }, { after = null, ...parameters }) {
      const { code } = await findLink(links, request, owner);
      const page = await clickListing.list({ owner, code, limit: parameters.limit ?? CLICKS_DEFAULT, after });
      return replyWithPage(`/v1/links/${code}/clicks`, parameters, page);
    },
  });
}

function periodOf(query: StatsQuery, now: number): Period {
  const decision = decidePeriod(query, now);
  if (decision.ok) return decision.period;
  throw refusal(decision.fault);
}

/** Of a stream; it goes on for as long as it is read, so an end and steps would promise what it does not keep. */
function startOf(query: StatsQuery, now: number): Start {
  const field = (["to", "interval"] as const).find((name) => query[name] !== undefined);
  if (field)
    throw refusal({ field, rule: "stream", detail: "has no meaning for a stream, which has no end and no series" });
  const decision = decideStart(query, now);
  if (decision.ok) return decision;
  throw refusal(decision.fault);
}

function refusal(fault: FieldFault): Problem {
  return new Problem("invalid-request", `the query parameter ${fault.field} ${fault.detail}`, [fault]);
}

function wishOf(code: string, { zone, from: since }: Start): LiveWish {
  const from = formatLocal(zone, since);
  const describe = ({ total, bots, prefetches }: LinkSums) =>
    JSON.stringify({ code, total, bots, prefetches, from } satisfies LiveCounts);
  return { code, since, describe };
}

/** @returns what `LiveCountsOptions.read` needs: everything from a time on, and no values */
export function readSince(statistics: Pick<Statistics, "readLink">) {
  return (code: string, since: number): Promise<LinkSums> => statistics.readLink(code, [since, NEVER], 0);
}
