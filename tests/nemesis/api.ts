// The admin API as the revokers use it: any write process, and again where the answer was lost.
import { createHttpClient, sendChecked } from "@linkfence/testkit";
import type { Dice } from "../simulation/dice.ts";
import type { Ledger } from "./ledger.ts";
import { isCut } from "./losses.ts";

/** An answer, and when its request was sent and it had come. */
export type Answer<T> = { status: number; json: T; sentAt: number; answeredAt: number };
export type Api = ReturnType<typeof createApi>;

/** What there may be besides answers that the caller expects: the database does not answer. */
const UNAVAILABLE = 503;
/** What a call takes beyond the time that it was told to wait: its queries, and a process that is stopped for a while. */
const EXTRA_MS = 3000;

type ApiOptions = { urls: readonly string[]; key: string; ledger: Ledger; dice: Dice; now: () => number };

export function createApi({ urls, key, ledger, dice, now }: ApiOptions) {
  const http = createHttpClient();
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const counts = { calls: 0, unavailable: 0, cut: 0 };

  /**
   * Calls once. Returns null where nothing is known of what came of it. An answer that there may not be is a violation.
   * @param waitMs how long the call was told to wait
   */
  async function call<T>(method: string, path: string, body?: unknown, waitMs = 0): Promise<Answer<T> | null> {
    counts.calls += 1;
    const sentAt = now();
    const accuse = (what: string) =>
      ledger.accuse({ rule: "no answer that there may be", code: "", what: `${method} ${path}: ${what}` });
    try {
      const options = { method, headers, timeoutMs: waitMs + EXTRA_MS };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await sendChecked(http, dice.pick(urls), path, { ...options, ...text });
      if (answer.status === UNAVAILABLE) counts.unavailable += 1;
      else if (answer.status > 202) accuse(`${answer.status} ${answer.body}`);
      else return { status: answer.status, json: JSON.parse(answer.body) as T, sentAt, answeredAt: now() };
    } catch (error) {
      if (isCut(error)) counts.cut += 1;
      else accuse(String(error));
    }
    return null;
  }

  return { call, counts: () => ({ ...counts }), close: http.close };
}
