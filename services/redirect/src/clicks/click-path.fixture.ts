// The way of a click behind the ring, on a disk and an ingest that do what a test says.
import type { Click, DropReport } from "@linkfence/contracts";
import { waitFor } from "@linkfence/testkit";
import { makeEntry } from "../domain/entry.ts";
import type { Disk } from "../spool/disk.fixture.ts";
import { splitFrames } from "../spool/frame.ts";
import { openSpool } from "../spool/open-spool.ts";
import { type ClickPath, type ClickPathOptions, createClickPath } from "./click-path.ts";
import { createClickRing } from "./click-ring.ts";
import type { SendResult } from "./click-sender.ts";

const row = { target: "https://example.com/", state: "ACTIVE", version: 3, remainingMs: null, owner: "ann" } as const;
const entry = makeEntry("abc", row, { loadedAt: { mono: 0, wall: 0 }, ttlMs: 1000 });
const nobody = { referrer: undefined, userAgent: undefined, prefetch: false };

export const AWAY: SendResult = { kind: "failed", reason: "away" };
export const REFUSED: SendResult = { kind: "refused", reason: "the ingest answered 400" };
export const TOO_LARGE: SendResult = { kind: "too-large", reason: "the ingest answered 413" };
export const stored = (inserted: number, duplicate = 0): SendResult => ({
  kind: "stored",
  result: { received: inserted + duplicate, inserted, duplicate, refused: 0 },
});

/** Stores each id once, as the real one does. */
export function createIngest() {
  const rows = new Set<string>();
  return {
    rows,
    store(clicks: readonly Click[]): SendResult {
      const before = rows.size;
      for (const { id } of clicks) rows.add(id);
      const inserted = rows.size - before;
      return stored(inserted, clicks.length - inserted);
    },
  };
}

type Trial = {
  disk?: Disk;
  capacity?: number;
  maxBytes?: number;
  /** How busy the process is; not at all, unless a test says so. */
  utilization?: () => number;
  answer: (clicks: readonly Click[], attempt: number) => SendResult;
};

const running: ClickPath[] = [];
/** Stops everything that was started. */
export async function stopPaths(): Promise<void> {
  for (const path of running.splice(0)) await path.stop(0);
}

let ids = 0;
/** Starts it, with a spool where there is a disk. */
export async function startPath({
  disk,
  capacity = 2000,
  maxBytes = 10_000_000,
  utilization = () => 0,
  answer,
}: Trial) {
  const ring = createClickRing(capacity);
  const sent: string[][] = [];
  const troubles: (string | null)[] = [];
  const told: DropReport[] = [];
  const now = () => performance.now();
  const place = { directory: "/spool", maxBytes, segmentBytes: 100_000 };
  const lock = async () => ({ release: async () => {}, holds: async () => true });
  const start = { incarnation: `p${++ids}`, at: ids };
  const spool =
    disk === undefined ? null : await openSpool({ ...place, fs: disk.fs, lock, start, now, onTrouble: () => {} });
  const options: ClickPathOptions = {
    ...{ ring, start, capacity, spool, now, utilization, random: () => 0.99, countryOf: () => undefined },
    send: async ({ frames }) => {
      const payloads = frames.flatMap((group) => splitFrames(group));
      const clicks = payloads.map((payload) => JSON.parse(payload.toString()) as Click);
      sent.push(clicks.map(({ id }) => id));
      return answer(clicks, sent.length);
    },
    newClickId: (at) => `${at}-${++ids}`,
    onTrouble: (reason) => troubles.push(reason),
    tellDrops: async (report) => void told.push(report),
    onUntold: () => {},
  };
  const path = createClickPath(options);
  running.push(path);
  const click = (count: number) => {
    for (let at = 0; at < count; at += 1) ring.push(entry, at, nobody);
  };
  const drained = () => waitFor("an empty ring", () => path.stats().inRing === 0);
  const settled = () => waitFor("the end of every click", () => path.ledger().inFlight === 0);
  return { path, start, spool, sent, troubles, told, click, drained, settled };
}

/** The right side of the ledger less its left one. */
export function gap(path: ClickPath): number {
  const { accepted, recovered, inserted, duplicate, deadLettered, refused, dropped, inFlight } = path.ledger();
  const lost = Object.values(dropped).reduce((total, count) => total + count, 0);
  return inserted + duplicate + deadLettered + refused + lost + inFlight - accepted - recovered;
}
