// Requests at a given rate, whatever becomes of them. Each is measured from when it was to be sent, so that a server that
// stands still is blamed for all the requests that would have come meanwhile, and not for the one that met it.
import { setTimeout as pause } from "node:timers/promises";

export type OpenLoop = {
  /** Requests a second. */
  rate: number;
  seconds: number;
  /** What is still under way so long after the last request, in ms, has failed. */
  graceMs: number;
  /** Sends the i-th request; resolves with whether it was answered as it should be. */
  send: (index: number) => Promise<boolean>;
};

/** Latencies in ms of what was answered, and how many requests were not. */
export type OpenLoopResult = { latencies: number[]; failed: number };

/** Sends `rate * seconds` requests on time, and waits for their ends. */
export async function runOpenLoop({ rate, seconds, graceMs, send }: OpenLoop): Promise<OpenLoopResult> {
  const total = Math.round(rate * seconds);
  const latencies: number[] = [];
  const under: Promise<void>[] = [];
  let over = false;
  const startedAt = performance.now();
  const dueAt = (index: number) => startedAt + (index * 1000) / rate;

  const sendOne = async (index: number) => {
    const good = await send(index).catch(() => false);
    if (good && !over) latencies.push(performance.now() - dueAt(index));
  };
  for (let index = 0; index < total; index += 1) {
    const early = dueAt(index) - performance.now();
    if (early > 0) await pause(early);
    under.push(sendOne(index));
  }
  const ended = new AbortController();
  await Promise.race([Promise.all(under), pause(graceMs, undefined, { signal: ended.signal }).catch(() => {})]);
  ended.abort();
  over = true;
  return { latencies, failed: total - latencies.length };
}
