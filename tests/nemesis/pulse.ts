// Feels whether the machine, and the database on it, have time at all. A bound that is made of deadlines says nothing where
// ten processes and whatever else runs wait for a processor.
import { setTimeout as pause } from "node:timers/promises";
import type { Ledger } from "./ledger.ts";
import { RECOVERY_MS } from "./nemesis.ts";
import { type Stage, WRITE_QUERY_MS } from "./stage.ts";

const EVERY_MS = 100;
/** A query that asks nothing takes milliseconds. Where it takes a quarter of a deadline, a real one may miss its own. */
const BUSY_MS = WRITE_QUERY_MS / 4;

type PulseOptions = { server: Stage["server"]; ledger: Ledger; now: () => number; over: AbortSignal };

/** Until `over`, tells the book of all the times that were too busy. */
export async function runPulse({ server, ledger, now, over }: PulseOptions): Promise<void> {
  while (!over.aborted) {
    const from = now();
    await server.sql`SELECT 1`.catch(() => {});
    await pause(EVERY_MS);
    if (now() - from > EVERY_MS + BUSY_MS) ledger.hinder(from)(now() + RECOVERY_MS);
  }
}
