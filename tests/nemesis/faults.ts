// What the nemesis can do, and how each of it is healed.
import type { FaultMode, FaultProxy } from "@linkfence/testkit";
import type { Dice } from "../simulation/dice.ts";
import { createHoard } from "./hoard.ts";
import type { Stage } from "./stage.ts";

/** One fault, at one place, of one length. */
export type Fault = {
  kind: string;
  /** What it happens to. Two faults at one place at the same time would undo each other. */
  place: string;
  /** The redirect process that it cuts off or stops; null where it is none, or not only one. */
  redirect: number | null;
  /** Whether a write process or the database is hindered by it. */
  hinders: boolean;
  /** ms from `begin` to `heal`. */
  lastsMs: number;
  begin(): unknown;
  heal(): unknown;
};

type Way<T> = {
  kind: string;
  /** How long it lasts, in TTLs, at the least and at the most. */
  lasts: readonly [number, number];
  begin(it: T, dice: Dice): unknown;
  heal(it: T): unknown;
};

const SHORT = [0.1, 0.8] as const;
const LONG = [1.2, 2.5] as const;
const ANY = [0.1, 2.5] as const;
const AT_ONCE = [0, 0] as const;
/** As far as a data centre on another continent. The deadline of a query is longer. */
const SLOW_MS = [20, 200] as const;
/** A megabit a second. */
const SLOW_BYTES_PER_SECOND = 125_000;

const setTo = (mode: FaultMode) => (line: FaultProxy) => line.set(mode);

const LINE: readonly Way<FaultProxy>[] = [
  { kind: "black hole", lasts: ANY, begin: setTo("hang"), heal: setTo("pass") },
  { kind: "answers lost", lasts: ANY, begin: setTo("mute"), heal: setTo("pass") },
  { kind: "refused", lasts: ANY, begin: setTo("refuse"), heal: setTo("pass") },
  { kind: "reset", lasts: AT_ONCE, begin: (line) => void line.reset(), heal: () => {} },
  {
    kind: "slow",
    lasts: ANY,
    begin: (line, dice) => line.delay(dice.between(...SLOW_MS), SLOW_BYTES_PER_SECOND),
    heal: (line) => line.delay(0),
  },
];

type Actor = Stage["redirects"][number]["actor"];

const PROCESS: readonly Way<Actor>[] = [
  { kind: "stopped for less than the TTL", lasts: SHORT, begin: (it) => it.pause(), heal: (it) => it.resume() },
  { kind: "stopped for longer than the TTL", lasts: LONG, begin: (it) => it.pause(), heal: (it) => it.resume() },
  { kind: "killed", lasts: ANY, begin: (it) => it.kill(), heal: (it) => it.start() },
  { kind: "restarted", lasts: AT_ONCE, begin: (it) => it.stop(), heal: (it) => it.start() },
];

const SERVER: readonly Way<Stage["server"]>[] = [
  { kind: "restarted", lasts: SHORT, begin: (it) => it.stop(), heal: (it) => it.start() },
  { kind: "killed", lasts: SHORT, begin: (it) => it.kill(), heal: (it) => it.start() },
  { kind: "one of its workers killed", lasts: AT_ONCE, begin: (it) => it.killWorker(), heal: (it) => it.answering() },
  { kind: "stopped where it stands", lasts: ANY, begin: (it) => it.freeze(), heal: (it) => it.thaw() },
];

/** Every redirect process one after the other, as a new release is rolled out. */
const ROLL_OUT: Way<Stage> = {
  kind: "restarted one by one",
  lasts: AT_ONCE,
  async begin({ redirects }) {
    for (const { actor } of redirects) {
      await actor.stop();
      await actor.start();
    }
  },
  heal: () => {},
};

type Draw = (dice: Dice) => Fault;
/** Faults of one sort of place, and how large a part of all it is to be. */
type Group = { part: number; faults: readonly Draw[] };

/**
 * Everything that can be done on a stage. What happens to redirect processes is most of it, as they are most of what is
 * there; within a group each fault is as likely as any other.
 */
export function listFaults(stage: Stage, ttlMs: number): readonly Group[] {
  function at<T>(it: T, ways: readonly Way<T>[], where: Pick<Fault, "place" | "redirect" | "hinders">): Draw[] {
    return ways.map((way) => (dice) => {
      const lastsMs = dice.between(...way.lasts) * ttlMs;
      return { ...where, kind: way.kind, lastsMs, begin: () => way.begin(it, dice), heal: () => way.heal(it) };
    });
  }
  const ofRedirects = stage.redirects.flatMap(({ name, actor, query, listen }, redirect) => [
    ...at(actor, PROCESS, { place: name, redirect, hinders: false }),
    ...at(query, LINE, { place: `${name}, line of queries`, redirect, hinders: false }),
    ...at(listen, LINE, { place: `${name}, line of notifications`, redirect: null, hinders: false }),
  ]);
  const ofWrites = stage.writes.flatMap(({ name, actor, database }) => [
    ...at(actor, PROCESS, { place: name, redirect: null, hinders: true }),
    ...at(database, LINE, { place: `${name}, line to the database`, redirect: null, hinders: true }),
  ]);
  const hoard = createHoard(stage.server.url);
  const full: Way<Stage["server"]> = {
    ...{ kind: "every connection taken", lasts: ANY },
    ...{ begin: () => hoard.take(), heal: () => hoard.leave() },
  };
  const ofServer = at(stage.server, [...SERVER, full], { place: "database", redirect: null, hinders: true });
  const ofAll = at(stage, [ROLL_OUT], { place: EVERYBODY, redirect: null, hinders: false });
  return [
    { part: 0.5, faults: ofRedirects },
    { part: 0.2, faults: ofWrites },
    { part: 0.25, faults: ofServer },
    { part: 0.05, faults: ofAll },
  ];
}

const EVERYBODY = "every redirect process";
/** A second one at the same time this often. */
const TWO = 0.35;

/** Draws one fault, or two that happen at once. */
export function drawFaults(dice: Dice, groups: readonly Group[]): Fault[] {
  const first = drawFault(dice, groups);
  if (!dice.chance(TWO)) return [first];
  const second = drawFault(dice, groups);
  return excludes(first, second) ? [first] : [first, second];
}

function drawFault(dice: Dice, groups: readonly Group[]): Fault {
  let left = dice.next() * groups.reduce((sum, { part }) => sum + part, 0);
  for (const { part, faults } of groups) {
    left -= part;
    if (left < 0) return dice.pick(faults)(dice);
  }
  throw new Error("there is no fault to draw");
}

/** A process that two restart at once would be started twice. */
function excludes(one: Fault, other: Fault): boolean {
  return one.place === other.place || [one.place, other.place].includes(EVERYBODY);
}
