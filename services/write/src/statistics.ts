// Asks click-ingest for the clicks of a code. Whatever is wrong over there ends here as one failure of one route.
import { LinkStats, Problem } from "@linkfence/contracts";
import { createValidator, exchange } from "@linkfence/service-shell";

/** A hung ingest may hold this many requests at a time; the next ones are refused at once. */
const MAX_CONCURRENT = 32;
/** Statistics of one code are a few kilobytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

export type StatisticsOptions = {
  /** URL of click-ingest. */
  baseUrl: string;
  /** What click-ingest wants to know of its callers, if anything. */
  secret?: string | undefined;
  /** Deadline of a whole exchange in ms. */
  timeoutMs: number;
  /** Told the cause when deliveries begin to fail, and undefined when they succeed again. */
  onChange?: (cause: unknown) => void;
};

export type Statistics = ReturnType<typeof createStatistics>;

/** Creates the reader of statistics. It rejects with `statistics-unavailable` and nothing else. */
export function createStatistics({ baseUrl, secret, timeoutMs, onChange = () => {} }: StatisticsOptions) {
  const base = baseUrl.replace(/\/+$/, "");
  const headers: Record<string, string> = { Accept: "application/json" };
  if (secret !== undefined) headers.Authorization = `Bearer ${secret}`;
  const validate = createValidator(LinkStats);
  const counts = { underWay: 0, failures: 0 };
  let failing = false;

  /** A failing ingest is told once, however often it is asked. */
  function note(cause: unknown): void {
    if (failing !== (cause !== undefined)) onChange(cause);
    failing = cause !== undefined;
  }

  /** Reads the statistics of a code that exists. */
  async function read(code: string): Promise<LinkStats> {
    if (counts.underWay >= MAX_CONCURRENT) throw unavailable();
    counts.underWay += 1;
    try {
      const stats = validate(
        await getJson(new URL(`${base}/v1/links/${code}/stats`), headers, AbortSignal.timeout(timeoutMs)),
      );
      note(undefined);
      return stats;
    } catch (error) {
      counts.failures += 1;
      note(causeOf(error));
      throw unavailable();
    } finally {
      counts.underWay -= 1;
    }
  }

  return { read, stats: () => ({ ...counts }) };
}

async function getJson(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<unknown> {
  const { status, text } = await exchange(url, { headers, signal, maxBytes: MAX_ANSWER_BYTES });
  if (status !== 200) throw new Error(`click-ingest answered ${status}`);
  return JSON.parse(text);
}

/** A deadline hides behind the word that the operation was aborted. */
function causeOf(error: unknown): unknown {
  const inner = typeof error === "object" && error !== null && "cause" in error ? error.cause : undefined;
  return inner ?? error ?? "unknown";
}

function unavailable(): Problem {
  return new Problem(
    "statistics-unavailable",
    "the statistics cannot be read now; links and redirects are not affected",
  );
}
