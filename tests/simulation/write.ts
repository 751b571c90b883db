// A write process of the product on a simulated machine: its watch over the registry, and calls that revoke and wait.
import { createCounts } from "../../services/write/src/counts.ts";
import { fenceMs } from "../../services/write/src/domain/fence.ts";
import type { Sight } from "../../services/write/src/domain/registry.ts";
import { createRegistryWatch } from "../../services/write/src/effective/registry-watch.ts";
import { lookWhetherEffective, waitUntilEffective } from "../../services/write/src/http/revocation.ts";
import type { RegistryStore } from "../../services/write/src/store/registry.ts";
import type { Revoked, Sighted } from "./database.ts";
import type { Revocation } from "./judge.ts";
import { createLine } from "./line.ts";
import { createProcess } from "./process.ts";
import type { World } from "./world.ts";

/** Nobody goes away before the answer. */
const REQUEST = {} as Parameters<typeof waitUntilEffective>[2];
/** A caller waits for so many fences, more than time alone takes. */
const PATIENCE = 3;

/** A call that waits, by the clock of the process. */
type Wait = { committedAt: number; epoch: string; seq: number };

export type Write = ReturnType<typeof startWrite>;

/** Starts it. It watches the registry at once. */
export function startWrite(world: World, name: string) {
  const { kernel, dice, judge, database, plan, twin } = world;
  const process = createProcess(kernel, dice, world.newRate());
  const { mono } = process;
  const reach = { kernel, dice, database, process, weather: plan.weather, deadlineMs: plan.deadlineMs };
  const line = createLine(reach);
  const waits = new Set<Wait>();
  /** True ms of the newest sight. */
  let shownAt = 0;

  /** As services/write/src/store/registry.ts does with its one statement. */
  async function look(): Promise<Sight> {
    const sentAt = mono();
    const { sighted, at } = await line.send<{ sighted: Sighted; at: number }>((reply) =>
      database.look((seen) => reply({ sighted: seen, at: kernel.now() })),
    );
    shownAt = at;
    const sight = { ...sighted, sentAt, receivedAt: mono() };
    world.tell?.(`${name} sees ${describe(sight)}`);
    // After the promises that go on now.
    kernel.at(kernel.now(), () => findLate(sight));
    return sight;
  }

  const real: Pick<RegistryStore, "look" | "settle" | "remove"> = {
    look,
    settle: (epoch) => line.send((reply) => database.settle(epoch, reply)),
    remove: (dead) => line.send((reply) => database.remove(dead, reply)),
  };
  const watch = createRegistryWatch({
    registry: twin.registry?.(real, { process, maxTtlMs: plan.ttlMs }) ?? real,
    now: mono,
    after: process.after,
    everyMs: plan.looksMs,
    unseenTtlMs: plan.ttlMs,
    counts: createCounts().effective,
    onUpkeep: (event) => {
      world.count("settled" in event ? "epoch settled" : "rows removed");
      world.tell?.(`${name} puts in order ${JSON.stringify(event)}`);
    },
    onTrouble: () => {},
  });
  const deps = { watch, mono };

  /** Whoever waits for longer than time alone takes is told at the first sight of the history that shows it. */
  function findLate({ sentAt, receivedAt, epoch }: Sight): void {
    for (const { committedAt, seq, ...wait } of waits) {
      if (wait.epoch !== epoch || sentAt < committedAt || receivedAt < committedAt + fenceMs(plan.ttlMs)) continue;
      judge.late(
        `${name} has not confirmed ${seq} at ${kernel.now()}, ${receivedAt - committedAt} ms of its clock after it`,
      );
    }
  }

  async function revoke(codes: readonly string[]): Promise<void> {
    const { answer, revocations } = await line.send<Revoked>((reply) => database.revoke(codes, reply));
    const seq = Math.max(...answer.map((each) => each.seq ?? 0));
    const wait = { committedAt: mono(), epoch: answer[0]?.epoch ?? "", seq };
    waits.add(wait);
    world.tell?.(`${name} waits for ${codes} (${seq})`);
    const query = { wait: "effective", timeoutMs: fenceMs(plan.ttlMs) * PATIENCE } as const;
    const { effective } = await waitUntilEffective(deps, answer, REQUEST, query).finally(() => waits.delete(wait));
    if (effective.confirmed) confirm(revocations, effective.by);
  }

  async function ask(code: string): Promise<void> {
    type Found = { seq: number; epoch: string; revocation: Revocation } | null;
    const found = await line.send<Found>((reply) => database.findRevocation(code, reply));
    if (!found) return;
    const effective = await lookWhetherEffective(deps, found);
    if (effective.confirmed) confirm([found.revocation], effective.by);
  }

  function confirm(revocations: readonly Revocation[], by: string | null): void {
    world.count(`confirmed by ${by}`);
    for (const revocation of revocations) {
      world.tell?.(`${name} confirms ${revocation.code} (${revocation.seq}) by ${by}`);
      judge.confirmed(revocation, by, shownAt);
      world.onConfirmed(revocation);
    }
  }

  return {
    name,
    process,
    line,
    wake: () => process.deliver(watch.wake),
    /** Calls of the API. Failures are nobody's concern: whoever made the call may make it again. */
    revoke: (codes: readonly string[]) => process.deliver(() => void revoke(codes).catch(() => {})),
    ask: (code: string) => process.deliver(() => void ask(code).catch(() => {})),
  };
}

function describe({ epoch, settled, head, instances }: Sight): string {
  const rows = instances.map(
    ({ id, epoch: heard, appliedSeq, renewals }) => `${id} ${heard}:${appliedSeq} #${renewals}`,
  );
  return `${epoch}${settled ? "" : " unsettled"} up to ${head}, [${rows}]`;
}
