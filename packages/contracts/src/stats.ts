import { type Static, Type } from "typebox";
import { Nullable, Timestamp } from "./link.ts";

/** Points of a series at the most: two years and eight months by day, six weeks by hour. */
export const STATS_POINTS_MAX = 1000;
/** Values of each kind, and links of an owner, that an answer names at the most. */
export const STATS_TOP = 10;
/** Clicks on a page at the most. */
export const CLICKS_LIMIT = 1000;
/** The years of which statistics can be asked for. No click is older than this product; all time zones keep to quarters of an hour. */
export const STATS_EARLIEST = "2020-01-01T00:00:00Z";
export const STATS_LATEST = "2100-01-01T00:00:00Z";

const Count = Type.Integer({ minimum: 0 });

/** Each click is one of three things, and counted as that alone. */
const counts = {
  total: Type.Integer({
    minimum: 0,
    description: "Times that the link was followed by people: by whatever does not say that it is a program of its own",
  }),
  bots: Type.Integer({
    minimum: 0,
    description: "Times that it was fetched by crawlers, previewers and monitors; no part of `total`",
  }),
  prefetches: Type.Integer({
    minimum: 0,
    description: "Times that a browser fetched it ahead, before anybody had followed it; no part of `total`",
  }),
};

const Moment = Type.String({ format: "date-time", description: "RFC 3339, with the offset of the time zone" });

const period = {
  from: Moment,
  to: Type.String({ format: "date-time", description: "Itself left out" }),
  interval: Type.Enum(["hour", "day"]),
  timezone: Type.String(),
};

/** One hour or day, from `start` to the `start` of the next, or to the end of the period. */
export const StatsPoint = Type.Object({ start: Moment, ...counts }, { additionalProperties: false });
export type StatsPoint = Static<typeof StatsPoint>;

const series = Type.Array(StatsPoint, {
  maxItems: STATS_POINTS_MAX,
  description: "Every hour or day of the period, also those without clicks; their sums are those of the period",
});

/** The values that stand for most people, and how many people all the others stand for. */
export const TopValues = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        { value: Nullable(Type.String({ description: "null where nothing is known" })), total: Count },
        { additionalProperties: false },
      ),
      { maxItems: STATS_TOP },
    ),
    others: Count,
  },
  { additionalProperties: false },
);
export type TopValues = Static<typeof TopValues>;

const dropped = Type.Array(Type.Object({ reason: Type.String(), total: Count }, { additionalProperties: false }), {
  description:
    "Clicks, of whatever link, that could not be kept in hours that the period touches. They are in no other number here",
});

const killed = Type.Object(
  {
    atMost: Type.Integer({
      minimum: 0,
      description:
        "Clicks that they may have taken, at the most. A bound, and no count: most often there were far fewer",
    }),
    unknown: Type.Integer({ minimum: 0, description: "Ends of which nobody knows how many clicks they took" }),
  },
  {
    additionalProperties: false,
    description: "Unclean ends of redirect processes in hours that the period touches. Nothing of them is in `dropped`",
  },
);

/** How often one link was followed in a period, and by whom. */
export const LinkStats = Type.Object(
  {
    code: Type.String(),
    ...counts,
    ...period,
    series,
    top: Type.Object(
      { referrers: TopValues, browsers: TopValues, systems: TopValues, devices: TopValues, countries: TopValues },
      { additionalProperties: false, description: "Of people alone" },
    ),
    dropped,
    killed,
  },
  { additionalProperties: false },
);
export type LinkStats = Static<typeof LinkStats>;

const LinkCounts = Type.Object({ code: Type.String(), ...counts }, { additionalProperties: false });

/** The same of all links of an owner. */
export const OwnerStats = Type.Object(
  {
    ...counts,
    ...period,
    series,
    links: Nullable(
      Type.Array(LinkCounts, {
        maxItems: STATS_TOP,
        description: "The links that most people followed; null where they could not be found in time",
      }),
    ),
    dropped,
    killed,
  },
  { additionalProperties: false },
);
export type OwnerStats = Static<typeof OwnerStats>;

const WHEN =
  "a date (`2026-01-31`, its beginning in the time zone) or an RFC 3339 time (a `+` is written `%2B`), which is widened to a whole quarter of an hour";

/** Parameters of statistics. What the texts mean is decided by the domain rules. */
export const StatsQuery = Type.Object(
  {
    from: Type.Optional(
      Type.String({ description: `Beginning of the period: ${WHEN}. The day 29 days before its last one by default` }),
    ),
    to: Type.Optional(Type.String({ description: `End of the period, itself left out: ${WHEN}. Now by default` })),
    interval: Type.Optional(Type.Enum(["hour", "day"], { default: "day" })),
    timezone: Type.Optional(
      Type.String({ description: "Name of the IANA time zone whose hours and days are meant. `UTC` by default" }),
    ),
  },
  { additionalProperties: false },
);
export type StatsQuery = Static<typeof StatsQuery>;

/** What a stream of counts tells: the period from `from` until now, each time that a number has changed. */
export const LiveCounts = Type.Object(
  { code: Type.String(), ...counts, from: Moment },
  { additionalProperties: false },
);
export type LiveCounts = Static<typeof LiveCounts>;

/** One click as it is kept: no address, and of the user agent what it says of itself in short. */
export const ClickRecord = Type.Object(
  {
    id: Type.String({ pattern: "^[0-9a-f-]{36}$" }),
    clickedAt: Timestamp,
    version: Type.Integer({ description: "Version of the link that was followed" }),
    referrer: Nullable(Type.String({ description: "Host of the page that the link was on" })),
    browser: Nullable(Type.String()),
    system: Nullable(Type.String({ description: "Operating system" })),
    device: Nullable(Type.String()),
    country: Nullable(Type.String({ description: "ISO 3166-1 alpha-2" })),
    bot: Type.Boolean(),
    prefetch: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type ClickRecord = Static<typeof ClickRecord>;

/** One page of clicks, newest first; `next` is the cursor of the page behind it, and null at the end. */
export const ClickPage = Type.Object(
  { items: Type.Array(ClickRecord), next: Nullable(Type.String()) },
  { additionalProperties: false },
);
export type ClickPage = Static<typeof ClickPage>;

export const ListClicksQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CLICKS_LIMIT, default: 100 })),
    after: Type.Optional(Type.String({ description: "`next` of the page before" })),
  },
  { additionalProperties: false },
);
export type ListClicksQuery = Static<typeof ListClicksQuery>;
