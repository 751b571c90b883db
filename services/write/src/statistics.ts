// Asks click-ingest for what it has counted. Whatever is wrong over there ends here as one failure of one route.
import {
  type ClickRecord,
  ClickRecords,
  LinkSums,
  OwnerSums,
  Problem,
  QUARTER_MS,
  STATS_TOP,
  type StepSums,
} from "@linkfence/contracts";
import { createValidator, exchange } from "@linkfence/service-shell";
import { createIngestCalls, type IngestOptions } from "./ingest-calls.ts";

/** A page of a thousand clicks with the longest hosts, in letters of three bytes, has a megabyte. */
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;

export type Statistics = ReturnType<typeof createStatistics>;

/** Cuts in ms since 1970, rising, at whole quarters of an hour: sums are asked for between each two that follow. */
export type Edges = readonly number[];

/** Where a page of clicks ends: it has at most so many, and starts behind a click where one is named. */
export type ClickRange = { limit: number; before: string | null };

/** Creates the reader of statistics. All of it rejects with `statistics-unavailable` and nothing else. */
export function createStatistics(options: IngestOptions) {
  const calls = createIngestCalls(options, unavailable);
  const headers = { Accept: "application/json", ...calls.authorized };
  const [validateLink, validateOwner] = [createValidator(LinkSums), createValidator(OwnerSums)];
  const validateClicks = createValidator(ClickRecords);

  /** @param read takes the answer apart; it throws where the answer is nonsense */
  const ask = <T>(path: string, query: Record<string, string>, read: (answer: unknown) => T): Promise<T> =>
    calls.run(async () => {
      const url = new URL(`${calls.base}${path}?${new URLSearchParams(query)}`);
      return read(await getJson(url, headers, AbortSignal.timeout(options.timeoutMs)));
    });

  return {
    /**
     * Adds up the clicks of a code that exists.
     * @param top how many values of each kind are wanted; 0 for none, and `top` is null then
     */
    readLink(code: string, edges: Edges, top: number = STATS_TOP): Promise<LinkSums> {
      return ask(`/v1/links/${code}/stats`, { ...stepsOf(edges), top: String(top) }, (answer) => {
        const sums = validateLink(answer);
        if (sums.code !== code) throw new Error("click-ingest answered for another code");
        checkSums(sums, edges);
        return sums;
      });
    },

    /** Adds up the clicks of an owner's links. */
    readOwner(owner: string, edges: Edges): Promise<OwnerSums> {
      return ask("/v1/stats", { owner, ...stepsOf(edges), top: String(STATS_TOP) }, (answer) => {
        const sums = validateOwner(answer);
        checkSums(sums, edges);
        return sums;
      });
    },

    /** Reads clicks of a code, newest first. */
    readClicks(code: string, { limit, before }: ClickRange): Promise<ClickRecord[]> {
      const query = { limit: String(limit), ...(before === null ? {} : { before }) };
      return ask(`/v1/links/${code}/clicks`, query, (answer) => {
        const { items } = validateClicks(answer);
        if (items.length > limit) throw new Error("click-ingest answered more clicks than it was asked for");
        return items;
      });
    },

    stats: calls.stats,
  };
}

/** Steps are so many quarters of an hour each. */
function stepsOf(edges: Edges): Record<string, string> {
  const steps = edges.slice(1).map((edge, index) => (edge - (edges[index] ?? edge)) / QUARTER_MS);
  return { start: String(edges[0]), steps: steps.join(",") };
}

type Sums = { total: number; bots: number; prefetches: number; series: StepSums[] };

/** Numbers that do not add up are nonsense, too. */
function checkSums({ total, bots, prefetches, series }: Sums, edges: Edges): void {
  if (series.length !== edges.length - 1) throw new Error("click-ingest answered another number of steps");
  const sum = (place: 0 | 1 | 2) => series.reduce((all, step) => all + step[place], 0);
  if (sum(0) !== total || sum(1) !== bots || sum(2) !== prefetches)
    throw new Error("the steps of click-ingest's answer do not add up to its sums");
}

async function getJson(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<unknown> {
  const { status, text } = await exchange(url, { headers, signal, maxBytes: MAX_ANSWER_BYTES });
  if (status !== 200) throw new Error(`click-ingest answered ${status}`);
  return JSON.parse(text);
}

function unavailable(): Problem {
  return new Problem(
    "statistics-unavailable",
    "the statistics cannot be read now; links and redirects are not affected",
  );
}
