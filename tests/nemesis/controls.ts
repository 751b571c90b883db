// Rules of acknowledged revocation taken out from around the product, by what else may write to its database.
import { setTimeout as pause } from "node:timers/promises";
import type { Nemesis } from "./nemesis.ts";
import type { Stage } from "./stage.ts";

export type Control = {
  name: string;
  /** What it changes, as a clause. */
  change: string;
  /** Before anybody registers. */
  prepare(server: Stage["server"], ttlMs: number): Promise<unknown>;
  /** Again and again during the run. */
  meddle(stage: Stage, nemesis: Nemesis): Promise<unknown>;
};

const nothing = async () => {};

/** Nobody is waited for any longer who may still answer from memory. */
const impatientJanitor: Control = {
  name: "impatient-janitor",
  change: "rows of redirect processes that are stopped or cut off are removed at once",
  prepare: nothing,
  async meddle({ server, redirects }, nemesis) {
    const ports = nemesis.cutOff().map((index) => `%:${new URL(redirects[index]?.actor.url ?? "").port}`);
    if (ports.length > 0) await server.sql`DELETE FROM redirect_instance WHERE address LIKE ANY(${ports})`;
  },
};

/** Longer than the time between two renewals, a quarter of the TTL, so that the row is not removed all the time. */
const FORGED = 0.35;

/** Time alone confirms before it may. */
const forgedTtl: Control = {
  name: "forged-ttl",
  change: "redirect processes have a longer TTL than their rows say",
  prepare: ({ sql }, ttlMs) =>
    sql.unsafe(`
      CREATE FUNCTION forge_ttl() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.ttl_ms := ${Math.round(ttlMs * FORGED)};
        RETURN NEW;
      END $$;
      CREATE TRIGGER forge_ttl BEFORE INSERT OR UPDATE ON redirect_instance FOR EACH ROW EXECUTE FUNCTION forge_ttl()`),
  meddle: nothing,
};

export const CONTROLS: readonly Control[] = [impatientJanitor, forgedTtl];

const MEDDLE_EVERY_MS = 20;

/** Meddles until `over`. A database that is away is left alone. */
export async function runControl(control: Control, stage: Stage, nemesis: Nemesis, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await control.meddle(stage, nemesis).catch(() => {});
    await pause(MEDDLE_EVERY_MS);
  }
}
