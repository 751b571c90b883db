// A redirect process of the product on a simulated machine, put together as services/redirect/src/main.ts does.
import { createFollower, type FollowOptions } from "@linkfence/link-feed";
import { createLinkCache } from "../../services/redirect/src/cache/link-cache.ts";
import { createLinkLookup, type LinkLookup } from "../../services/redirect/src/cache/link-lookup.ts";
import { createLoader, type Loader } from "../../services/redirect/src/cache/loader.ts";
import { createClickRing } from "../../services/redirect/src/clicks/click-ring.ts";
import type { LinkRow } from "../../services/redirect/src/domain/entry.ts";
import { type Asker, createHotPath } from "../../services/redirect/src/http/hot-path.ts";
import type { Asked } from "./judge.ts";
import { createLine } from "./line.ts";
import { createProcess, type Process } from "./process.ts";
import type { World } from "./world.ts";

/** More than there are codes. Small, since a cache takes its room at once. */
const SMALL_CACHE = { maxEntries: 8, maxBytes: 1_000_000, maxUnknown: 1, maxVersions: 8 };
/** A process that is told to stop waits so many TTLs for the requests it has. */
const DRAIN_TTLS = 0.5;
/** Texts that are there already: a new one for each answer would be dear. */
const ANSWERS: Record<number, string> = { 302: "answer 302", 410: "answer 410", 503: "answer 503" };
const STATUS = { gone: 410, "not-found": 404, unavailable: 503 };

export type Redirect = ReturnType<typeof startRedirect>;

/** Starts it. It follows the log and answers requests at once. */
export function startRedirect(world: World, name: string, ttlMs: number) {
  const { kernel, dice, judge, database, plan, twin } = world;
  const process = createProcess(kernel, dice, world.newRate());
  const reach = { kernel, dice, database, process, weather: plan.weather, deadlineMs: plan.deadlineMs };
  const [feed, links] = [createLine(reach), createLine(reach)];
  const now = () => ({ mono: process.mono(), wall: process.wall() });
  const readLink = (code: string) => links.send<LinkRow | null>((reply) => database.readLink(code, reply));
  const lookup = assemble({ readLink, ttlMs, now, process, world });
  const hotPath = createHotPath({
    lookup,
    ring: createClickRing(1),
    now,
    debugEntryAge: false,
    onLoadError: () => {},
  });
  let ids = 0;
  let open = 0;
  let draining = false;

  const options: FollowOptions = {
    pollIntervalMs: plan.pollMs,
    ttlMs,
    now,
    random: dice.next,
    after: process.after,
    newInstanceId: () => `${name}.${++ids}`,
    register: (id) => feed.send<void>((reply) => database.register({ id, address: name, ttlMs }, reply)),
    sync: (request) => feed.send((reply) => database.sync(request, reply)),
    apply: (changes) => {
      world.tell?.(`${name} applies ${changes.map(({ seq }) => seq)}`);
      lookup.apply(changes);
    },
    flush: (cause) => {
      world.count(`flush ${cause}`);
      world.tell?.(`${name} forgets everything: ${cause}`);
      lookup.flush();
    },
    onSynced: lookup.synced,
    onTrouble: () => {},
    onRecovered: () => {},
  };
  const follower = createFollower(twin.follow?.(options, { process, lookup, dice }) ?? options);

  /** No click is made, and no part of an answer depends on what else a request says. */
  function askerOf(asked: Asked): Asker {
    const answer = (status: number) => {
      world.tell?.(`${name} answers a request for ${asked.code} of ${asked.startedAt} with ${status}`);
      world.count(ANSWERS[status] ?? "another answer");
      open -= 1;
      judge.answered(asked, status);
    };
    return {
      ...{ clicks: false, rawHeaders: [], address: undefined, isOver: () => false },
      redirect: () => answer(302),
      show: (page) => answer(STATUS[page]),
    };
  }

  /** Takes its row out as soon as nobody waits for an answer, or some time later. */
  function leaveWhenIdle(until: number): void {
    if (open > 0 && process.mono() < until) {
      process.after(ttlMs / 20, () => leaveWhenIdle(until));
      return;
    }
    const leave = () => feed.send<void>((reply) => database.deregister(follower.instance(), reply));
    void follower.stop().then(leave).then(process.kill, process.kill);
  }

  return {
    name,
    process,
    feed,
    links,
    isOpen: () => process.isAlive() && !draining,
    wake: () => process.deliver(follower.wake),
    /** A visitor's request, which is handled when the process comes to it. */
    request(code: string): void {
      process.deliver(() => {
        open += 1;
        const asked = judge.started(code, name, ttlMs / process.rate);
        hotPath.follow(askerOf(asked), code);
      });
    },
    /** As SIGTERM. */
    shutDown(): void {
      draining = true;
      process.deliver(() => leaveWhenIdle(process.mono() + ttlMs * DRAIN_TTLS));
    },
  };
}

type Assembly = {
  readLink: (code: string) => Promise<LinkRow | null>;
  ttlMs: number;
  now: () => { mono: number; wall: number };
  process: Process;
  world: World;
};

function assemble({ readLink, ttlMs, now, process, world: { dice, twin } }: Assembly): LinkLookup {
  const cache = createLinkCache(SMALL_CACHE);
  const newLoader = () => createLoader({ cache, readLink, ttlMs, negativeTtlMs: ttlMs / 10, now, random: dice.next });
  const loader: Loader = twin.loader?.(newLoader) ?? newLoader();
  const lookup = createLinkLookup({ cache, loader, ttlMs });
  return twin.lookup?.(lookup, { process, ttlMs }) ?? lookup;
}
