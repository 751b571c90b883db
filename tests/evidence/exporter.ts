import { setTimeout as pause } from "node:timers/promises";
import { type ExportJob, type ExportOrder, hasEnded } from "@linkfence/contracts";
import { startService, waitFor } from "@linkfence/testkit";

/** Seldom enough to be nothing beside the export. */
const LOOK_EVERY_MS = 100;

/** Starts an ingest that exports. */
export async function startExporter(databaseUrl: string, env: Record<string, string>) {
  const service = await startService("click-ingest", { STATS_DATABASE_URL: databaseUrl, ...env });

  async function ask(path: string, init?: RequestInit): Promise<ExportJob> {
    const answer = await fetch(`${service.url}/v1/exports${path}`, init);
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as ExportJob;
  }

  return {
    service,
    /** Orders an export. Rejects where it is refused. */
    order: (order: ExportOrder) =>
      ask("", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) }),
    /** Cancels one. */
    cancel: (id: string, owner = "ann") => ask(`/${id}?owner=${owner}`, { method: "DELETE" }),
    /** A job once it has ended, however long that takes. */
    async ended(id: string, owner = "ann"): Promise<ExportJob> {
      for (;;) {
        const job = await ask(`/${id}?owner=${owner}`);
        if (hasEnded(job)) return job;
        await pause(LOOK_EVERY_MS);
      }
    },
    /** A job, once it is as `holds` wants it. */
    until: (id: string, holds: (job: ExportJob) => boolean, owner = "ann") =>
      waitFor(`the export to be as ${holds}`, async () => {
        const job = await ask(`/${id}?owner=${owner}`);
        return holds(job) && job;
      }),
  };
}
