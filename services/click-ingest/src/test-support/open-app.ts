import type { DropReport } from "@linkfence/contracts";
import request from "supertest";
import { createApp } from "../app.ts";
import type { DeadLetter } from "../domain/dead-letter.ts";
import { createAuthentication } from "../http/authenticate.ts";
import { createLedger } from "../queue/ledger.ts";
import type { Outcome } from "../queue/submission.ts";
import type { Refusal } from "../store/refusals.ts";
import type { StatsStore } from "../store/stats.ts";
import { createQuietLogger } from "./quiet-logger.ts";

type Changes = {
  outcome?: Outcome;
  bury?: (sender: string, letters: readonly DeadLetter[]) => Promise<readonly boolean[]>;
  report?: () => Promise<void>;
  secret?: string;
};

const SUMS = { total: 7, bots: 1, prefetches: 0, series: [], dropped: [] };
const STATS: StatsStore = {
  readLink: async (code) => ({ code, ...SUMS, top: null }),
  readOwner: async () => ({ ...SUMS, links: [] }),
  readClicks: async () => [],
};

/** An app whose intake stores everything at once, or ends as it is told to; it keeps what it got, by kind. */
export function openApp({ outcome, bury, report, secret }: Changes = {}) {
  const reports: DropReport[] = [];
  const offered: unknown[][] = [];
  const dead: DeadLetter[] = [];
  const refused: Refusal[] = [];
  const ledger = createLedger();
  const logger = createQuietLogger();
  const intake = {
    async offer(clicks: readonly unknown[]): Promise<Outcome> {
      offered.push([...clicks]);
      return outcome ?? { kind: "stored", inserted: clicks.length, duplicate: 0, buried: 0, late: [], noRoom: [] };
    },
  };
  const deadClicks = {
    async bury(sender: string, letters: readonly DeadLetter[]) {
      dead.push(...letters);
      return bury ? bury(sender, letters) : letters.map(() => true);
    },
  };
  const drops = {
    take: (told: DropReport) => void reports.push(told),
    async store(told: DropReport) {
      reports.push(told);
      await report?.();
    },
  };
  const refusals = { note: async (list: readonly Refusal[]) => void refused.push(...list) };
  const authentication = createAuthentication(secret);
  const app = createApp({ intake, deadClicks, refusals, ledger, stats: STATS, drops, logger, authentication });
  const post = (clicks: unknown) => request(app).post("/v1/clicks").send({ sender: "test", clicks });
  return { app, ledger, logger, offered, dead, refused, reports, post };
}
