import type { Readiness } from "@linkfence/service-shell";
import type { Intake } from "./queue/intake.ts";
import type { ClickStore } from "./store/clicks.ts";

/** A probe asks every few seconds and itself waits about as long as this. */
const PROBE_TIMEOUT_MS = 1000;

/** Ready means: clicks are taken in, and the database is reachable and has the schema. */
export function createReadiness(intake: Pick<Intake, "isOpen">, clicks: Pick<ClickStore, "hasSchema">) {
  return async (): Promise<Readiness> => {
    if (!intake.isOpen()) return { ready: false, reason: "stopping" };
    try {
      if (await clicks.hasSchema(PROBE_TIMEOUT_MS)) return { ready: true };
      return { ready: false, reason: "the statistics database lacks the schema: run the migrations" };
    } catch {
      return { ready: false, reason: "the statistics database does not answer" };
    }
  };
}
