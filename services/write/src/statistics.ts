// Asks click-ingest for the clicks of a code. Whatever is wrong over there ends here as one failure of one route.
import { LinkStats, Problem } from "@linkfence/contracts";
import { createValidator } from "@linkfence/service-shell";

/** A hung ingest may hold this many requests at a time; the next ones are refused at once. */
const MAX_CONCURRENT = 32;
/** Statistics of one code are a few kilobytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

export type StatisticsOptions = {
  /** URL of click-ingest. */
  baseUrl: string;
  /** Deadline of a whole exchange in ms. */
  timeoutMs: number;
  /** Told why the ingest did not deliver, in words for a log. */
  onFailure?: (error: unknown) => void;
};

export type Statistics = ReturnType<typeof createStatistics>;

/** Creates the reader of statistics. It rejects with `statistics-unavailable` and nothing else. */
export function createStatistics({ baseUrl, timeoutMs, onFailure = () => {} }: StatisticsOptions) {
  const base = baseUrl.replace(/\/+$/, "");
  const validate = createValidator(LinkStats);
  const counts = { underWay: 0, failures: 0 };

  /** Reads the statistics of a code that exists. */
  async function read(code: string): Promise<LinkStats> {
    if (counts.underWay >= MAX_CONCURRENT) throw unavailable();
    counts.underWay += 1;
    try {
      return validate(await fetchJson(`${base}/v1/links/${code}/stats`, AbortSignal.timeout(timeoutMs)));
    } catch (error) {
      counts.failures += 1;
      onFailure(error);
      throw unavailable();
    } finally {
      counts.underWay -= 1;
    }
  }

  return { read, stats: () => ({ ...counts }) };
}

async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { signal, redirect: "error", headers: { Accept: "application/json" } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`click-ingest answered ${response.status}`);
  }
  return JSON.parse(await readText(response));
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES) throw new Error(`click-ingest answered more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function unavailable(): Problem {
  return new Problem(
    "statistics-unavailable",
    "the statistics cannot be read now; links and redirects are not affected",
  );
}
