import type { DropReport } from "@linkfence/contracts";
import request from "supertest";
import { createApp } from "../app.ts";
import type { DeadLetter } from "../domain/dead-letter.ts";
import { createAuthentication } from "../http/authenticate.ts";
import { createLedger } from "../queue/ledger.ts";
import type { Outcome } from "../queue/submission.ts";
import type { StatsStore } from "../store/stats.ts";
import { createQuietLogger } from "./quiet-logger.ts";

type Changes = {
  outcome?: Outcome;
  bury?: (sender: string, letters: readonly DeadLetter[]) => Promise<readonly boolean[]>;
  secret?: string;
};

const SUMS = { total: 7, bots: 1, prefetches: 0, series: [], dropped: [] };
const STATS: StatsStore = {
  readLink: async (code) => ({ code, ...SUMS, top: null }),
  readOwner: async () => ({ ...SUMS, links: [] }),
  readClicks: async () => [],
};

/** An app whose intake stores everything at once, or ends as it is told to; it keeps what it got, by kind. */
export function openApp({ outcome, bury, secret }: Changes = {}) {
  const reports: DropReport[] = [];
  const offered: unknown[][] = [];
  const dead: DeadLetter[] = [];
  const ledger = createLedger();
  const logger = createQuietLogger();
  const intake = {
    async offer(clicks: readonly unknown[]): Promise<Outcome> {
      offered.push([...clicks]);
      return outcome ?? { kind: "stored", inserted: clicks.length, duplicate: 0, late: 0, unstorable: [] };
    },
  };
  const deadClicks = {
    async bury(sender: string, letters: readonly DeadLetter[]) {
      dead.push(...letters);
      return bury ? bury(sender, letters) : letters.map(() => true);
    },
  };
  const drops = { take: (report: DropReport) => void reports.push(report) };
  const authentication = createAuthentication(secret);
  const app = createApp({ intake, deadClicks, ledger, stats: STATS, drops, logger, authentication });
  const post = (clicks: unknown) => request(app).post("/v1/clicks").send({ sender: "test", clicks });
  return { app, ledger, logger, offered, dead, reports, post };
}
