// What a load balancer does: it asks each process at its /readyz all the time, and sends requests, in turn, to those alone
// whose last answer said yes and is not too old to count.
import { setTimeout as pause } from "node:timers/promises";
import { createHttpClient } from "@linkfence/testkit";
import type { RedirectProcess } from "./redirect-process.ts";

/** Pause between two questions to the same process. */
const ASK_EVERY_MS = 20;
/**
 * How long a yes counts from when it was asked for. A process has to answer for longer than that after its last yes, which
 * its STOP_DELAY_MS sees to.
 */
export const YES_LASTS_MS = 250;

export type Rotation = ReturnType<typeof createRotation>;

/** Begins with no process; they are asked until `stop`. */
export function createRotation() {
  const http = createHttpClient(4);
  const yesAt = new Map<RedirectProcess, number>();
  const asking: Promise<void>[] = [];
  let turn = 0;
  let over = false;

  async function isReady({ service }: RedirectProcess): Promise<boolean> {
    const answer = await http.send(service.opsUrl, "/readyz").catch(() => null);
    return answer?.status === 200;
  }

  async function ask(redirect: RedirectProcess): Promise<void> {
    while (!over) {
      const sentAt = performance.now();
      if (await isReady(redirect)) yesAt.set(redirect, sentAt);
      else yesAt.delete(redirect);
      await pause(ASK_EVERY_MS);
    }
  }

  function members(): RedirectProcess[] {
    const now = performance.now();
    return [...yesAt].filter(([, at]) => now - at < YES_LASTS_MS).map(([redirect]) => redirect);
  }

  return {
    add(redirect: RedirectProcess): void {
      asking.push(ask(redirect));
    },
    members,
    /** Whose turn it is; undefined where nobody is ready. */
    next(): RedirectProcess | undefined {
      const ready = members();
      turn += 1;
      return ready[turn % ready.length];
    },
    async stop(): Promise<void> {
      over = true;
      await Promise.all(asking);
      http.close();
    },
  };
}
