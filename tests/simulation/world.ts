// One schedule: everything that a seed makes happen, and what the judge says of it.
import { CLOCK_RATE_ERROR, fenceMs } from "../../services/write/src/domain/fence.ts";
import { createDatabase, type Database } from "./database.ts";
import { createDice, type Dice } from "./dice.ts";
import { createJudge, type Judge, type Revocation } from "./judge.ts";
import { createKernel, type Kernel } from "./kernel.ts";
import { drawPlan, type Fault, type Plan } from "./plan.ts";
import { type Redirect, startRedirect } from "./redirect.ts";
import type { Twin } from "./twins.ts";
import { startWrite, type Write } from "./write.ts";

/** A few more than a plan starts, so that none of its restarts is refused. */
const REDIRECTS_MAX = 8;

export type World = {
  kernel: Kernel;
  dice: Dice;
  judge: Judge;
  database: Database;
  plan: Plan;
  twin: Twin;
  /** The rate of the clock of one more machine. */
  newRate: () => number;
  onConfirmed: (revocation: Revocation) => void;
  count: (what: string) => void;
  /** Present where somebody reads the history. */
  tell?: (event: string) => void;
};

export type Schedule = ReturnType<typeof createSchedule>;

export type ScheduleOptions = {
  twin: Twin;
  /** Counts what happens. */
  tally: Map<string, number>;
  /** What happens is put there, a line for each event. */
  history?: string[];
};

/** Sets a schedule up. */
export function createSchedule(seed: number, { twin, tally, history }: ScheduleOptions) {
  const dice = createDice(seed);
  const plan = drawPlan(dice);
  const kernel = createKernel();
  const judge = createJudge(kernel.now);
  const redirects: Redirect[] = [];
  const writes: Write[] = [];
  let started = 0;

  const database = createDatabase({
    kernel,
    dice,
    judge,
    codes: plan.codes,
    pageLimit: plan.pageLimit,
    meanMs: plan.weather.meanMs * 4,
    lockFirst: twin.lockFirst ?? true,
    countsRenewals: twin.countsRenewals ?? false,
    notify,
  });
  const world: World = { kernel, dice, judge, database, plan, twin, newRate, onConfirmed: probe, count };
  if (history) world.tell = (event) => void history.push(`${kernel.now().toFixed(3)} ${event}`);

  function count(what: string): void {
    tally.set(what, (tally.get(what) ?? 0) + 1);
  }

  function newRate(): number {
    return 1 + CLOCK_RATE_ERROR * (twin.rateErrors ?? 1) * dice.pick([-0.5, 0.5, dice.between(-0.5, 0.5)]);
  }

  /** Hints come late, twice or never. */
  function notify(channel: "link_change" | "instance_ack"): void {
    for (const process of channel === "link_change" ? redirects : writes) {
      if (dice.chance(plan.lostHints)) continue;
      kernel.at(kernel.now() + dice.delay(plan.weather.meanMs), process.wake);
      if (dice.chance(0.1)) kernel.at(kernel.now() + dice.delay(plan.ttlMs / 10), process.wake);
    }
  }

  /** Whoever may still answer with the old target is asked right after a confirmation, and once more. */
  function probe({ code }: Revocation): void {
    for (const redirect of redirects) {
      if (!redirect.isOpen()) continue;
      kernel.at(kernel.now(), () => redirect.request(code));
      kernel.at(kernel.now() + dice.between(0, 0.4) * plan.ttlMs, () => redirect.request(code));
    }
  }

  function addRedirect(): void {
    if (redirects.length >= REDIRECTS_MAX) return;
    const ttlMs = plan.redirects[started % plan.redirects.length] ?? plan.ttlMs;
    started += 1;
    const redirect = startRedirect(world, `redirect${started}`, ttlMs);
    redirects.push(redirect);
    kernel.enter();
    if (plan.tightAt !== null || !dice.chance(plan.early)) return;
    if (dice.chance(0.5)) redirect.links.slow(plan.ttlMs / 10);
    for (const code of plan.codes) kernel.at(kernel.now(), () => redirect.request(code));
  }

  function addWrite(): void {
    writes.push(startWrite(world, `write${writes.length + 1}`));
    kernel.enter();
  }

  /**
   * Has every redirect process read a link and the log, cuts them off, revokes, and looks again and again when time alone
   * is to confirm: here the bound has no room but for what is assumed of clocks.
   */
  function meetYoungMemories(at: number): void {
    const code = dice.pick(plan.codes);
    const little = plan.ttlMs / 1000;
    kernel.at(at - little, () => {
      for (const redirect of redirects) {
        redirect.wake();
        redirect.request(code);
      }
    });
    kernel.at(at, () => {
      for (const redirect of redirects) redirect.feed.cut(plan.ttlMs * 2);
      openWrite()?.revoke([code]);
    });
    for (let look = -8; look < 8; look += 1)
      kernel.at(at + fenceMs(plan.ttlMs) + look * little, () => {
        for (const write of writes) write.wake();
      });
  }

  const openRedirect = () => dice.pick(redirects.filter((redirect) => redirect.isOpen()));
  const openWrite = () => dice.pick(writes.filter(({ process }) => process.isAlive()));
  const aWhile = () => plan.ttlMs * (dice.chance(0.3) ? dice.between(0, 0.3) : dice.between(0.3, 2));

  const faults: Record<Fault, () => void> = {
    "stop-redirect": () => openRedirect()?.process.stop(aWhile()),
    "sleep-redirect": () => openRedirect()?.process.sleep(aWhile()),
    "kill-redirect": () => {
      openRedirect()?.process.kill();
      addRedirect();
    },
    "shut-down-redirect": () => {
      openRedirect()?.shutDown();
      if (dice.chance(0.5)) addRedirect();
    },
    "start-redirect": addRedirect,
    "cut-feed": () => openRedirect()?.feed.cut(aWhile()),
    "cut-redirect": () => {
      const redirect = openRedirect();
      redirect?.feed.cut(aWhile());
      redirect?.links.cut(aWhile());
    },
    "slow-feed": () => openRedirect()?.feed.slow(aWhile()),
    "slow-links": () => openRedirect()?.links.slow(aWhile()),
    "stop-write": () => openWrite()?.process.stop(aWhile()),
    "restart-write": () => {
      openWrite()?.process.kill();
      addWrite();
    },
    "cut-write": () => openWrite()?.line.cut(aWhile()),
    "slow-write": () => openWrite()?.line.slow(aWhile()),
    "step-wall": () =>
      dice
        .pick<Redirect | Write>(dice.chance(0.3) ? redirects : writes)
        .process.stepWall(plan.ttlMs * dice.between(-4, 4)),
    trim: () => database.trim(dice.whole(1, 2)),
    crash: () => database.crash(plan.ttlMs * dice.between(0, 0.1)),
    "fail-over": () => database.failOver(dice.pick([0, 1, 2, 4, 20]), plan.ttlMs * dice.between(0, 0.4)),
  };

  for (let count = 0; count < plan.writes; count += 1) addWrite();
  for (let count = 0; count < plan.redirects.length; count += 1) addRedirect();
  if (plan.tightAt !== null) meetYoungMemories(plan.tightAt);
  // A request for an entry that grows old has it read anew.
  for (const at of plan.requests)
    if (plan.tightAt === null || at > plan.tightAt + plan.ttlMs * 1.1)
      kernel.at(at, () => openRedirect()?.request(dice.pick(plan.codes)));
  for (const at of plan.revocations) {
    kernel.at(at, () => openWrite()?.revoke(dice.chance(0.2) ? plan.codes : [dice.pick(plan.codes)]));
    if (dice.chance(plan.trims)) kernel.at(at + dice.delay(plan.ttlMs / 20), () => database.trim(1));
  }
  for (const at of plan.asks) kernel.at(at, () => openWrite()?.ask(dice.pick(plan.codes)));
  for (const { at, fault } of plan.faults)
    kernel.at(at, () => {
      count(`fault ${fault}`);
      world.tell?.(fault);
      faults[fault]();
    });

  return {
    seed,
    plan,
    judge,
    /** Has things happen up to the next process that runs; promises have to go on before the next turn. Returns false at the end. */
    turn: () => judge.violations().length === 0 && kernel.turn(plan.endsAt),
    steps: kernel.steps,
  };
}
