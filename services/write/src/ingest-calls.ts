// What stands around every call to click-ingest: who asks, how many at a time, and that a failing one is told once.
import type { Problem } from "@linkfence/contracts";

export type IngestOptions = {
  /** URL of click-ingest. */
  baseUrl: string;
  /** What click-ingest wants to know of its callers, if anything. */
  secret?: string | undefined;
  /** Deadline of a whole exchange in ms. */
  timeoutMs: number;
  /** Told the cause when calls begin to fail, and undefined when they succeed again. */
  onChange?: (cause: unknown) => void;
};

/** A hung ingest may hold this many requests at a time; the next ones are refused at once. */
const MAX_CONCURRENT = 32;

/**
 * Creates it.
 * @param unavailable what a caller is told where click-ingest gave no answer, or nonsense
 * @param isAnswer whether an error is what click-ingest says of the request itself, and goes to the caller as it is
 */
export function createIngestCalls(
  { baseUrl, secret, onChange = () => {} }: IngestOptions,
  unavailable: () => Problem,
  isAnswer: (error: unknown) => boolean = () => false,
) {
  const counts = { underWay: 0, failures: 0 };
  let failing = false;

  /** A failing ingest is told once, however often it is asked. */
  function note(cause: unknown): void {
    if (failing !== (cause !== undefined)) onChange(cause);
    failing = cause !== undefined;
  }

  return {
    /** Without a slash at its end. */
    base: baseUrl.replace(/\/+$/, ""),
    /** What shows that this service may ask. */
    authorized: (secret === undefined ? {} : { Authorization: `Bearer ${secret}` }) as Record<string, string>,

    /** Makes one call. Rejects with what click-ingest says of the request, or with `unheard`. */
    async run<T>(call: () => Promise<T>, unheard = unavailable): Promise<T> {
      if (counts.underWay >= MAX_CONCURRENT) throw unheard();
      counts.underWay += 1;
      try {
        const found = await call();
        note(undefined);
        return found;
      } catch (error) {
        if (isAnswer(error)) {
          note(undefined);
          throw error;
        }
        counts.failures += 1;
        note(causeOf(error));
        throw unheard();
      } finally {
        counts.underWay -= 1;
      }
    },

    stats: () => ({ ...counts }),
  };
}

/** A deadline hides behind the word that the operation was aborted. */
function causeOf(error: unknown): unknown {
  const inner = typeof error === "object" && error !== null && "cause" in error ? error.cause : undefined;
  return inner ?? error ?? "unknown";
}
