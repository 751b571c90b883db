import { setTimeout as delay } from "node:timers/promises";
import type { Click, ClickBatchResult } from "@linkfence/contracts";

/** Long enough not to saturate the machine while a service is away. */
const RESEND_AFTER_MS = 20;
/** Far beyond every deadline of a service, and below the test runner's own. */
const GIVE_UP_AFTER_MS = 30_000;

/** Posts one batch once. Returns the counts, or undefined for anything but a 200: then the sender keeps the batch. */
export async function postBatch(
  url: string,
  clicks: readonly unknown[],
  sender = "test",
): Promise<ClickBatchResult | undefined> {
  try {
    const answer = await fetch(`${url}/v1/clicks`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sender, clicks }),
      signal: AbortSignal.timeout(10_000),
    });
    const body = (await answer.json()) as ClickBatchResult;
    return answer.status === 200 ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Posts a batch again and again, with the same ids, until it is answered with counts; throws after half a minute. */
export async function sendUntilAnswered(url: string, clicks: readonly Click[]): Promise<ClickBatchResult> {
  const giveUpAt = performance.now() + GIVE_UP_AFTER_MS;
  while (performance.now() < giveUpAt) {
    const result = await postBatch(url, clicks);
    if (result) return result;
    await delay(RESEND_AFTER_MS);
  }
  throw new Error("the batch was not answered with counts");
}
