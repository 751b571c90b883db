import type { DropReport, LastDrops } from "@linkfence/contracts";
import { exchange } from "@linkfence/service-shell";

/** A commit of one row on a server that answers; it is waited for at the end of a stop, after which nobody tells of it. */
const DEADLINE_MS = 1000;
const ANSWER_MAX_BYTES = 65_536;

export type LastDropsOptions = {
  /** The ingest's URL. */
  baseUrl: string;
  /** Name under which the ingest's log speaks of this process. */
  sender: string;
  /** What the ingest wants to know of its callers, if anything. */
  secret?: string | undefined;
};

/** Creates the function that tells the ingest once what was dropped. It rejects where that is not stored within a second. */
export function createLastDrops({ baseUrl, sender, secret }: LastDropsOptions) {
  const url = new URL(`${baseUrl.replace(/\/+$/, "")}/v1/drops`);
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (secret !== undefined) headers.Authorization = `Bearer ${secret}`;
  return async (dropped: DropReport): Promise<void> => {
    const told: LastDrops = { sender, dropped };
    const { status } = await exchange(url, {
      method: "POST",
      headers,
      body: Buffer.from(JSON.stringify(told)),
      signal: AbortSignal.timeout(DEADLINE_MS),
      maxBytes: ANSWER_MAX_BYTES,
    });
    if (status !== 200) throw new Error(`the ingest answered ${status}`);
  };
}
