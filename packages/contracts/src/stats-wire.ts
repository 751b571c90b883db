// What write asks of click-ingest, and is answered. Who knows time zones cuts a period into steps of quarters of an hour;
// who has the clicks adds them up between the cuts, and needs no zone.
import { type Static, Type } from "typebox";
import { ClickRecord, STATS_POINTS_MAX, STATS_TOP, TopValues } from "./stats.ts";

/** The finest that clicks are added up by. All of today's time zones begin their hours and days at one. */
export const QUARTER_MS = 900_000;

const Count = Type.Integer({ minimum: 0 });

/** People, bots and prefetches of one step, in this order. */
export const StepSums = Type.Tuple([Count, Count, Count]);
export type StepSums = Static<typeof StepSums>;

/** What people's clicks are counted by. The database knows each by its number, so that none may ever change. */
export const DIMENSIONS = { referrer: 1, browser: 2, os: 3, device: 4, country: 5 } as const;
export type Dimension = keyof typeof DIMENSIONS;

/** More reasons than there are. What lies beyond is summed up as `other`. */
export const DROPPED_REASONS_MAX = 100;

/** Clicks dropped by any redirect process, by reason. */
export const DroppedSums = Type.Array(
  Type.Object({ reason: Type.String({ maxLength: 64 }), total: Count }, { additionalProperties: false }),
  { maxItems: DROPPED_REASONS_MAX },
);
export type DroppedSums = Static<typeof DroppedSums>;

const TopSums = Type.Object(
  { referrer: TopValues, browser: TopValues, os: TopValues, device: TopValues, country: TopValues },
  { additionalProperties: false },
);
export type TopSums = Static<typeof TopSums>;

const sums = {
  total: Count,
  bots: Count,
  prefetches: Count,
  /** One for each step; none where no steps were asked for. */
  series: Type.Array(StepSums, { maxItems: STATS_POINTS_MAX }),
  dropped: DroppedSums,
};

/** What the ingest knows of one code. A code it never saw has a total of 0: whether the link exists is not its business. */
export const LinkSums = Type.Object(
  { code: Type.String(), ...sums, top: Type.Union([TopSums, Type.Null()]) },
  { additionalProperties: false },
);
export type LinkSums = Static<typeof LinkSums>;

const CodeSums = Type.Object(
  { code: Type.String(), total: Count, bots: Count, prefetches: Count },
  { additionalProperties: false },
);

/** What it knows of an owner's links; `links` is null where it could not find the greatest in time. */
export const OwnerSums = Type.Object(
  { ...sums, links: Type.Union([Type.Array(CodeSums, { maxItems: STATS_TOP }), Type.Null()]) },
  { additionalProperties: false },
);
export type OwnerSums = Static<typeof OwnerSums>;

/** Clicks of one code, newest first. */
export const ClickRecords = Type.Object({ items: Type.Array(ClickRecord) }, { additionalProperties: false });
export type ClickRecords = Static<typeof ClickRecords>;
