import { InstanceList } from "@linkfence/contracts";
import { hasApplied } from "../domain/registry.ts";
import { call, type Routes } from "./call.ts";
import type { EffectiveDeps } from "./revocation.ts";

/** The call that shows who is registered. */
export function instanceRoutes({ watch, mono }: EffectiveDeps): Routes {
  const listInstances = call({
    scope: "admin",
    describe: {
      operationId: "listInstances",
      summary: "List the redirect processes that are registered",
      description:
        "A revocation is confirmed when each of them has acknowledged it. One that falls silent leaves the list when it cannot answer from memory any more.",
      group: "Revocation",
      answers: { 200: { description: "All of them, and what they have applied", schema: InstanceList } },
      problems: [],
    },
    async handle() {
      const { sight, unchangedSince } = await watch.glance();
      const { epoch, settled, head } = sight;
      const now = mono();
      const items = sight.instances.map((instance) => {
        const { id, address, ttlMs, followsFeed, appliedSeq, renewals } = instance;
        const since = unchangedSince(id);
        return {
          ...{ id, address, ttlMs, followsFeed, appliedSeq, renewals },
          lag: Math.max(0, head - appliedSeq),
          current: hasApplied(instance, head, epoch),
          silentMs: since === null ? null : Math.max(0, Math.round(now - since)),
        };
      });
      return { status: 200, body: { epoch, settled, head, items } };
    },
  });

  return { "/v1/instances": { get: listInstances } };
}
