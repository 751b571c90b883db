import request from "supertest";
import { createApp } from "../app.ts";
import type { DeadLetter } from "../domain/dead-letter.ts";
import { createAuthentication } from "../http/authenticate.ts";
import { createLedger } from "../queue/ledger.ts";
import type { Outcome } from "../queue/submission.ts";
import { createQuietLogger } from "./quiet-logger.ts";

type Changes = {
  outcome?: Outcome;
  bury?: (sender: string, letters: readonly DeadLetter[]) => Promise<readonly boolean[]>;
  countClicks?: (code: string) => Promise<number>;
  secret?: string;
};

/** An app whose intake stores everything at once, or ends as it is told to; it keeps what it was offered, and the dead. */
export function openApp({ outcome, bury, countClicks = async () => 7, secret }: Changes = {}) {
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
  const authentication = createAuthentication(secret);
  const app = createApp({ intake, deadClicks, ledger, stats: { countClicks }, logger, authentication });
  const post = (clicks: unknown) => request(app).post("/v1/clicks").send({ sender: "test", clicks });
  return { app, ledger, logger, offered, dead, post };
}
