// One run: sets the stage, has everybody play at once, heals everything, waits for what is pending, and judges.
import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { mapConcurrently } from "@linkfence/testkit";
import { fenceMs } from "../../services/write/src/domain/fence.ts";
import { closingAfterwards } from "../evidence/closing.ts";
import { createDice } from "../simulation/dice.ts";
import { createApi } from "./api.ts";
import type { Violation } from "./checker.ts";
import { type Control, runControl } from "./controls.ts";
import type { Fault } from "./faults.ts";
import { createLedger, type Link } from "./ledger.ts";
import { startLoad } from "./load.ts";
import { startNemesis } from "./nemesis.ts";
import { runPulse } from "./pulse.ts";
import { createLinks, PAUSE_MS, runRevoker } from "./revoker.ts";
import { setStage, WRITE_QUERY_MS } from "./stage.ts";

/** Links that nobody revokes. */
const STANDING = 20;
const REVOKERS = 4;
/** A write process looks at the registry this often: while nobody waits, and while somebody does. */
const LOOK_MS = { idle: 1000, awaited: 50 };
/** When everything was healed: far longer than connections take to be made anew, and the last confirmations to come. */
const PENDING_MS = 30_000;
const LAST_WIDTH = 16;
/** How long a link is asked for after its confirmation, in TTLs: until whoever was late has been heard, too. */
const KEPT_FOR = 1.5;

/**
 * From the call that revokes to the confirmation, where only redirect processes are hindered: its commit; a look by another
 * write process, if that one is asked; the longest time that anybody may go on by memory; the look that comes after it; and
 * the pause of whoever asks again.
 */
function confirmationBound(ttlMs: number): number {
  return WRITE_QUERY_MS + LOOK_MS.idle + fenceMs(ttlMs) + LOOK_MS.awaited + WRITE_QUERY_MS + PAUSE_MS;
}

export type RunOptions = {
  seed: number;
  /** How long faults happen, and how many times one or two are done at the most. */
  ms: number;
  rounds?: number;
  /** CACHE_TTL_MS of every process. How long faults last is measured by it. */
  ttlMs: number;
  redirects: number;
  writes: number;
  /** Requests a second to each redirect process. */
  rate: number;
  control?: Control | undefined;
  only?: ((fault: Fault) => boolean) | undefined;
  /** Ends when so many violations were found. */
  enough?: number;
  /** Breaks it off: everything is healed, what was seen is told, and nothing is waited for. */
  brokenOff?: AbortSignal;
  onFault?: (fault: Fault, atMs: number) => void;
  /** Told now and then. */
  onProgress?: (seen: Seen) => void;
};

export type Seen = {
  ms: number;
  /** Whether it was broken off: then nothing is said of its end. */
  brokenOff: boolean;
  faults: ReadonlyMap<string, number>;
  revocations: number;
  confirmed: { acknowledged: number; ttl: number };
  /** Answers that told of a revocation and did not confirm it. */
  unconfirmed: number;
  /** From the call to the confirmation, in ms. */
  times: readonly number[];
  statuses: ReadonlyMap<number, number>;
  calls: { calls: number; unavailable: number; cut: number };
  /** Links of which nothing that is said here is known, and the others, with whatever else there may not be. */
  passed: number;
  failed: number;
  /** The first of them. */
  violations: readonly Violation[];
};

const PROGRESS_MS = 30_000;
const LOOK_EVERY_MS = 50;
const now = () => performance.now();

/** Runs it. Rejects where the stage cannot be set, or not be healed. */
export function runNemesis(options: RunOptions): Promise<Seen> {
  const { ms, enough = Number.POSITIVE_INFINITY, brokenOff = new AbortController().signal } = options;
  return closingAfterwards(async (later) => {
    const scene = await setScene({ ...options, brokenOff }, later);
    const { stage, api, ledger, load } = scene;
    const over = new AbortController();
    /** Nothing is waited for any more. */
    const atEnd = new AbortController();
    const giveUp = AbortSignal.any([brokenOff, atEnd.signal]);
    // Every link that is asked for after its confirmation waits for it.
    setMaxListeners(0, giveUp, over.signal);
    const standing = Array.from({ length: STANDING }, (_, index) => `standing-${index}`);
    for (const link of await createLinks(api, ledger, standing, giveUp)) load.add(link);

    const startedAt = now();
    const { nemesis, counts, players } = play(scene, options, { over, giveUp });
    const see = (): Seen => ({
      ...{ ms: now() - startedAt, brokenOff: brokenOff.aborted, faults: nemesis.counts(), ...counts },
      ...{ calls: api.counts(), ...ledger.tally() },
    });
    const watched = { ms, isEnough: () => ledger.failed() >= enough, onProgress: () => options.onProgress?.(see()) };
    await untilOver(AbortSignal.any([brokenOff, over.signal]), watched);
    over.abort();
    await nemesis.finished;
    await Promise.race([players, pause(PENDING_MS, undefined, { signal: brokenOff, ref: false }).catch(() => {})]);
    load.stop();
    atEnd.abort();
    await players;
    if (!brokenOff.aborted) await stage.ready();
    await judgeEnd(scene, !brokenOff.aborted);
    return see();
  });
}

type Scene = Awaited<ReturnType<typeof setScene>>;
type Later = Parameters<Parameters<typeof closingAfterwards>[0]>[0];

/** The stage, and what asks and calls from outside. */
async function setScene(options: RunOptions & { brokenOff: AbortSignal }, later: Later) {
  const { seed, ttlMs, redirects, writes, rate, control, brokenOff } = options;
  // Each has chance of its own: what the nemesis does must not depend on how fast the others are.
  const diceOf = (part: number) => createDice(seed + part * 0x1000_0000);
  const ledger = createLedger();
  const stage = await setStage({
    ...{ redirects, writes, ttlMs, later },
    prepare: (server) => control?.prepare(server, ttlMs),
    // A terminal's Ctrl-C reaches every process of the run.
    onLoss: (what) => {
      if (!brokenOff.aborted) ledger.accuse({ rule: "no answer that there may be", code: "", what });
    },
  });
  const apiUrls = stage.writes.map(({ actor }) => actor.url);
  const api = createApi({ urls: apiUrls, key: stage.adminKey, ledger, dice: diceOf(1), now });
  later(api.close);
  const urls = stage.redirects.map(({ actor }) => actor.url);
  const load = startLoad({ urls, rate, ledger, dice: diceOf(2), now });
  later(load.close);
  return { stage, api, load, ledger, diceOf, confirmedWithinMs: confirmationBound(ttlMs) };
}

type Signals = { over: AbortController; giveUp: AbortSignal };

/** Has the nemesis and the revokers begin. `players` resolves when they have ended; where one fails all are told to end. */
function play(scene: Scene, options: RunOptions, { over: ending, giveUp }: Signals) {
  const { ttlMs, control, only, rounds, onFault } = options;
  const { stage, diceOf, ...shared } = scene;
  const startedAt = now();
  const over = ending.signal;
  const nemesis = startNemesis({
    ...{ stage, ttlMs, dice: diceOf(3), ledger: scene.ledger, now, over, only, rounds },
    onFault: (fault, at) => onFault?.(fault, at - startedAt),
  });
  const counts = { revocations: 0, unconfirmed: 0 };
  const revokers = Array.from({ length: REVOKERS }, (_, index) =>
    runRevoker({
      ...{ ...shared, now, counts, over, giveUp, keepMs: ttlMs * KEPT_FOR },
      ...{ name: `link-${index}`, dice: diceOf(4 + index) },
    }),
  );
  const meddling = control ? runControl(control, stage, nemesis, over) : Promise.resolve();
  const pulse = runPulse({ server: stage.server, ledger: scene.ledger, now, over });
  const players = Promise.all([nemesis.finished, ...revokers, meddling, pulse]);
  const end = () => ending.abort();
  nemesis.finished.then(end, end);
  players.catch(end);
  return { nemesis, counts, players };
}

type Watched = { ms: number; isEnough: () => boolean; onProgress: () => void };

/** Resolves when the time is over, or enough was found. */
async function untilOver(signal: AbortSignal, { ms, isEnough, onProgress }: Watched): Promise<void> {
  const endsAt = now() + ms;
  let tellAt = now() + PROGRESS_MS;
  while (!signal.aborted && now() < endsAt && !isEnough()) {
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
    if (now() < tellAt) continue;
    tellAt += PROGRESS_MS;
    onProgress();
  }
}

/** Asks every process for every link once more, unless it was broken off, and judges what had not been judged yet. */
async function judgeEnd({ stage, ledger, load, confirmedWithinMs }: Scene, ended: boolean): Promise<void> {
  const open = ledger.open();
  while (open.some(({ underWay }) => underWay > 0)) await pause(LOOK_EVERY_MS);
  const links = ledger.all();
  if (ended) {
    const askAll = (link: Link) => Promise.all(stage.redirects.map((_, instance) => load.askLast(instance, link)));
    await mapConcurrently(links, LAST_WIDTH, askAll);
  }
  for (const link of links) ledger.judge(link, { confirmedWithinMs, ended });
}
