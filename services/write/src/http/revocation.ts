// Revocations that return when they are in force everywhere.
import {
  type Effective,
  MISSING_SHOWN,
  Problem,
  REVOKE_TIMEOUT_DEFAULT_MS,
  type RevokeQuery,
} from "@linkfence/contracts";
import type { Request } from "express";
import type { Verdict } from "../domain/confirmation.ts";
import type { RegistryWatch } from "../effective/registry-watch.ts";
import type { RevokedCode } from "../store/links.ts";

export type EffectiveDeps = {
  watch: Pick<RegistryWatch, "confirm" | "committedBy" | "glance">;
  /** ms of the clock of the watch. */
  mono: () => number;
};

type Found = Exclude<RevokedCode, { outcome: "not-found" }>;
type Waited = { status: 200 | 202; effective: Effective };

/** Time for one look at the registry, and a second one where the first was under way. */
const LOOK_MS = 200;
/** Committed, and nothing claimed about the caches of redirect processes. */
const COMMITTED: Waited = {
  status: 200,
  effective: { confirmed: false, by: null, afterMs: null, instances: null },
};
/** Nothing was revoked, so there is nothing that could still be answered. */
const NOTHING: Waited = {
  status: 200,
  effective: { confirmed: true, by: "acknowledged", afterMs: 0, instances: { total: 0, acknowledged: 0 } },
};

/**
 * Waits for revocations that have just been committed, all of them together.
 * @throws Problem `unavailable` where the database goes by another history meanwhile
 */
export async function waitUntilEffective(
  { watch, mono }: EffectiveDeps,
  revoked: readonly RevokedCode[],
  request: Request,
  { wait = "effective", timeoutMs = REVOKE_TIMEOUT_DEFAULT_MS }: RevokeQuery,
): Promise<Waited> {
  const now = mono();
  if (wait === "committed") return COMMITTED;
  const found = revoked.filter((each): each is Found => each.outcome !== "not-found");
  const [first] = found;
  if (!first) return NOTHING;
  const seq = Math.max(...found.map((each) => each.seq));
  const isNew = found.some(({ outcome }) => outcome === "revoked");
  // Of what was revoked before, this process may know for how long it has been.
  const committedAt = isNew ? now : (watch.committedBy(seq, first.epoch) ?? now);
  const gone = new AbortController();
  const leave = () => gone.abort();
  // Who left while the revocation was under way has closed already.
  if (request.res?.destroyed) leave();
  request.res?.once("close", leave);
  const verdict = await watch.confirm({ seq, epoch: first.epoch, committedAt }, timeoutMs, gone.signal);
  request.res?.off("close", leave);
  const effective = presentVerdict(verdict, mono());
  return { status: effective.confirmed ? 200 : 202, effective };
}

/** Says how far a revocation has come by now, which takes one look at the registry. */
export async function lookWhetherEffective(
  { watch, mono }: EffectiveDeps,
  { seq, epoch }: { seq: number; epoch: string },
): Promise<Effective> {
  const committedAt = watch.committedBy(seq, epoch) ?? mono();
  return presentVerdict(await watch.confirm({ seq, epoch, committedAt }, LOOK_MS), mono());
}

/** What a verdict says to whoever asked. Throws a Problem where it says nothing. */
function presentVerdict(verdict: Verdict, now: number): Effective {
  if (verdict.kind === "history-changed")
    throw new Problem(
      "unavailable",
      "the database was replaced by another one, which may lack the revocation: repeat the call",
    );
  const { instances, missing } = verdict;
  if (verdict.kind === "confirmed")
    return { confirmed: true, by: verdict.by, afterMs: roundUp(verdict.afterMs), instances };
  const shown = missing.slice(0, MISSING_SHOWN);
  return {
    confirmed: false,
    by: null,
    afterMs: null,
    instances,
    effectiveWithinMs: roundUp(Math.max(0, verdict.fencedAt - now)),
    missing: shown.map(({ address }) => address),
    missingIds: shown.map(({ id }) => id),
  };
}

function roundUp(ms: number): number {
  return Math.ceil(ms * 1000) / 1000;
}
