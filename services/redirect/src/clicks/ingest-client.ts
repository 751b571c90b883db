import { ClickBatchResult, type DropReport } from "@linkfence/contracts";
import { createValidator, exchange } from "@linkfence/service-shell";
import { createBatchBody } from "./batch-body.ts";
import type { Batch } from "./click-batches.ts";
import type { SendResult } from "./click-sender.ts";

/** The ingest answers after its commit, and gives a batch back after 5 s at the latest; then this is long enough. */
const DEADLINE_MS = 8000;
/** An honest answer has five small numbers. */
const ANSWER_MAX_BYTES = 65_536;

export type IngestClientOptions = {
  /** The ingest's URL. */
  baseUrl: string;
  /** Name under which the ingest's log speaks of this process. */
  sender: string;
  /** What the ingest wants to know of its callers, if anything. */
  secret?: string | undefined;
  /** What each batch says of clicks that will never come. */
  dropped: () => DropReport;
};

/** Creates the function that sends one batch to the ingest, each click as the JSON that it is. */
export function createIngestClient({ baseUrl, sender, secret, dropped }: IngestClientOptions) {
  const url = new URL(`${baseUrl.replace(/\/+$/, "")}/v1/clicks`);
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (secret !== undefined) headers.Authorization = `Bearer ${secret}`;
  const checkResult = createValidator(ClickBatchResult);
  const makeBody = createBatchBody(sender);
  // The memory of one batch serves for the next, as ever new memory of this size would wait for the collector. Only an ingest
  // that has taken a batch has read all of it: after anything else a part may still be on its way.
  let room: Buffer | undefined;

  return async ({ clicks, frames }: Pick<Batch, "clicks" | "frames">, signal: AbortSignal): Promise<SendResult> => {
    // One listener for each attempt, taken off again: a signal that lives as long as the process must not collect them.
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    const deadline = setTimeout(abort, DEADLINE_MS);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const body = makeBody(frames, dropped(), room);
      room = undefined;
      const { status, text } = await exchange(url, {
        method: "POST",
        headers,
        body,
        signal: attempt.signal,
        maxBytes: ANSWER_MAX_BYTES,
      });
      if (status !== 200) return { kind: kindOf(status), reason: `the ingest answered ${status}` };
      const result = readResult(text, clicks);
      room = Buffer.from(body.buffer);
      return { kind: "stored", result };
    } catch (error) {
      const reason =
        attempt.signal.aborted && !signal.aborted
          ? `no answer within ${DEADLINE_MS} ms`
          : error instanceof Error
            ? error.message
            : String(error);
      return { kind: "failed", reason };
    } finally {
      clearTimeout(deadline);
      signal.removeEventListener("abort", abort);
    }
  };

  /** Whatever is not exactly an account of this batch is as good as no answer: the batch is sent again. */
  function readResult(text: string, sent: number): ClickBatchResult {
    const result = checkResult(JSON.parse(text));
    const { received, inserted, duplicate, deadLettered = 0, refused } = result;
    if (received !== sent || inserted + duplicate + deadLettered + refused !== sent)
      throw new Error("the ingest's account is wrong");
    return result;
  }
}

/**
 * The batch itself may be at fault: of a shape this ingest does not know; or too large, for a proxy in front of it perhaps
 * (413, RFC 9110 section 15.5.14). Everything else may pass.
 */
function kindOf(status: number): "refused" | "too-large" | "failed" {
  if (status === 413) return "too-large";
  return status === 400 || status === 415 || status === 422 ? "refused" : "failed";
}
