// Asks every redirect process for links at a steady pace, whether it answers or not, over connections that are kept.
import { setTimeout as pause } from "node:timers/promises";
import { createHttpClient } from "@linkfence/testkit";
import type { Dice } from "../simulation/dice.ts";
import type { Ledger, Link } from "./ledger.ts";
import { isCut } from "./losses.ts";

/** Requests that wait for one process at the most: so many lie in its sockets while it is stopped. */
const WAITING_MAX = 32;
/** Longer than anybody is stopped for. */
const PATIENCE_MS = 30_000;
const TICK_MS = 10;
const LAST_PAUSE_MS = 100;
/** How large a part of the requests is for links that are just being revoked. */
const HOT = 0.6;

export type Load = ReturnType<typeof startLoad>;

export type LoadOptions = {
  urls: readonly string[];
  /** Requests a second to each of them. */
  rate: number;
  ledger: Ledger;
  dice: Dice;
  now: () => number;
};

/** Starts it, at first with no links to ask for. */
export function startLoad({ urls, rate, ledger, dice, now }: LoadOptions) {
  const http = urls.map(() => createHttpClient(WAITING_MAX));
  const waiting = urls.map(() => 0);
  const calm = new Set<Link>();
  const hot = new Set<Link>();

  /** Asks one process for one link, and writes down what came of it. */
  async function ask(instance: number, link: Link): Promise<number> {
    const base = urls[instance] ?? "";
    waiting[instance] = (waiting[instance] ?? 0) + 1;
    link.underWay += 1;
    const sentAt = now();
    let [status, target]: [number, string | null] = [0, null];
    try {
      const answer = await http[instance]?.send(base, `/${link.code}`, { timeoutMs: PATIENCE_MS });
      [status, target] = [answer?.status ?? 0, answer?.headers.location ?? null];
    } catch (error) {
      if (!isCut(error)) ledger.accuse({ rule: "no answer that there may be", code: link.code, what: String(error) });
    }
    waiting[instance] = (waiting[instance] ?? 0) - 1;
    link.underWay -= 1;
    ledger.visited(link, { instance, sentAt, answeredAt: now(), status, target });
    return status;
  }

  function draw(): Link | undefined {
    const from = hot.size > 0 && (calm.size === 0 || dice.chance(HOT)) ? hot : calm;
    return [...from][dice.whole(0, from.size - 1)];
  }

  /** Asks until there is an answer, and keeps it as what is so at the end. */
  async function askLast(instance: number, link: Link): Promise<void> {
    const endsAt = now() + PATIENCE_MS;
    // A connection that was kept for long may be closed just when it is used; and a machine may be busy.
    while ([0, 503].includes(await ask(instance, link)) && now() < endsAt) await pause(LAST_PAUSE_MS);
    link.last.push(...link.visits.splice(-1));
  }

  let owed = 0;
  let last = now();
  const ticker = setInterval(() => {
    const at = now();
    // After a pause of this process nothing is made up for: that would be a burst.
    owed = Math.min(owed + ((at - last) * rate) / 1000, Math.max(1, (rate * TICK_MS * 2) / 1000));
    last = at;
    for (; owed >= 1; owed -= 1) for (const instance of urls.keys()) tick(instance);
  }, TICK_MS);

  function tick(instance: number): void {
    const link = draw();
    if (link && (waiting[instance] ?? 0) < WAITING_MAX) void ask(instance, link);
  }

  return {
    askLast,
    /** Asks for it from now on. */
    add: (link: Link) => void calm.add(link),
    /** Asks for it more often. */
    heat(link: Link): void {
      calm.delete(link);
      hot.add(link);
    },
    drop(link: Link): void {
      calm.delete(link);
      hot.delete(link);
    },
    /** Asks every process, and waits for `ms` at the most. */
    async askAll(link: Link, ms: number): Promise<void> {
      const answers = Promise.all(urls.map((_, instance) => ask(instance, link)));
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      });
      await Promise.race([answers, late]);
      clearTimeout(timer);
    },
    stop: () => clearInterval(ticker),
    /** After `stop`, and when every answer has come. */
    close(): void {
      clearInterval(ticker);
      for (const client of http) client.close();
    },
  };
}
