// Reads what the clicks add up to. Each answer is one statement, so that all of it is of one moment: a value never has more
// people than there are. What it costs depends on the hours and values of the period, and on no number of clicks.
import {
  type ClickRecord,
  DIMENSIONS,
  type Dimension,
  DROPPED_REASONS_MAX,
  type DroppedSums,
  type LinkSums,
  type OwnerSums,
  type StepSums,
  type TopSums,
  type TopValues,
} from "@linkfence/contracts";
import { arrayLiteral, type Database, DeadlineExceeded } from "@linkfence/db";
import type { ClicksRequest, SumsRequest } from "../domain/stats-request.ts";
import { readValue } from "../domain/value-name.ts";
import { type OwnerLink, selectClicks, selectOwnerLinks, selectSums } from "./stats-rows.ts";

export type StatsStore = ReturnType<typeof createStatsStore>;

/** The links of an owner may be a million: their order is left out where it takes half of a usual deadline. */
const LINKS_TIMEOUT_MS = 1000;

type Step = [step: number, total: number, bots: number, prefetches: number];
type Top = [dimension: number, value: string, people: number];
type Drop = [reason: string, total: number];

/** Creates the reader. Every call rejects with the database's error. */
export function createStatsStore(database: Database) {
  async function readSums(key: { code: string } | { owner: string }, request: SumsRequest) {
    const [row] = await database.read((sql) =>
      selectSums(sql, key, { ...request, literal: arrayLiteral(request.edges) }),
    );
    const steps = (row?.steps ?? []) as Step[];
    const series = spread(steps, request.edges.length - 1);
    const sum = (place: 0 | 1 | 2) => series.reduce((all, step) => all + step[place], 0);
    return {
      sums: {
        total: sum(0),
        bots: sum(1),
        prefetches: sum(2),
        series: request.stepped ? series : [],
        dropped: describeDrops((row?.drops ?? []) as Drop[]),
      },
      tops: (row?.tops ?? []) as Top[],
    };
  }

  return {
    /** Adds up the clicks of a code; of one that has none, to 0. */
    async readLink(code: string, request: SumsRequest): Promise<LinkSums> {
      const { sums, tops } = await readSums({ code }, request);
      return { code, ...sums, top: request.top === 0 ? null : describeTops(tops, sums.total) };
    },

    /** Adds up the clicks of an owner's links, and finds those that most people followed. */
    async readOwner(owner: string, request: SumsRequest): Promise<OwnerSums> {
      const [{ sums }, links] = await Promise.all([readSums({ owner }, request), readOwnerLinks(owner, request)]);
      return { ...sums, links };
    },

    /** Reads clicks of a code, newest first. */
    async readClicks(code: string, request: ClicksRequest): Promise<ClickRecord[]> {
      return [...(await database.read((sql) => selectClicks(sql, code, request)))];
    },
  };

  /** Null where it takes too long. */
  async function readOwnerLinks(owner: string, request: SumsRequest): Promise<OwnerLink[] | null> {
    try {
      return [...(await database.read((sql) => selectOwnerLinks(sql, owner, request), LINKS_TIMEOUT_MS))];
    } catch (error) {
      if (error instanceof DeadlineExceeded) return null;
      throw error;
    }
  }
}

/** Every step in its place, also those in which nothing happened. */
function spread(steps: readonly Step[], count: number): StepSums[] {
  const series = Array.from({ length: count }, (): StepSums => [0, 0, 0]);
  for (const [step, ...sums] of steps) series[step - 1] = sums;
  return series;
}

function describeTops(tops: readonly Top[], total: number): TopSums {
  const of = (dimension: Dimension): TopValues => {
    const items = tops
      .filter(([number]) => number === DIMENSIONS[dimension])
      .map(([, value, people]) => ({ value: value === "" ? null : readValue(value), total: people }));
    return { items, others: total - items.reduce((sum, item) => sum + item.total, 0) };
  };
  const [referrer, browser, os, device, country] = [
    of("referrer"),
    of("browser"),
    of("os"),
    of("device"),
    of("country"),
  ];
  return { referrer, browser, os, device, country };
}

/** No report can make the answer longer than whoever asks takes: the smallest sums stand together. */
function describeDrops(drops: readonly Drop[]): DroppedSums {
  const sums = drops.map(([reason, total]) => ({ reason, total }));
  if (sums.length <= DROPPED_REASONS_MAX) return sums;
  const falling = sums.sort((a, b) => b.total - a.total);
  const rest = falling.splice(DROPPED_REASONS_MAX - 1).reduce((sum, { total }) => sum + total, 0);
  return [...falling, { reason: "other", total: rest }];
}
