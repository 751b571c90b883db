// What a flush and a process that was stopped do to reads that are under way, and to who asks next.
import { describe, expect, test } from "@jest/globals";
import { createLinkCache } from "../cache/link-cache.ts";
import { createLinkLookup } from "../cache/link-lookup.ts";
import { createLoader } from "../cache/loader.ts";
import { createClickRing } from "../clicks/click-ring.ts";
import type { LinkRow } from "../domain/entry.ts";
import { type Asker, createHotPath } from "./hot-path.ts";

const TTL = 1000;
const OLD: LinkRow = { target: "https://old.example/", state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" };
const REVOKED: LinkRow = { target: null, state: "REVOKED", version: 2, remainingMs: null, owner: "ann" };

/** The real parts, on a clock that the test moves, with reads that it answers. `asked` resolves at the next read. */
function createWorld() {
  let mono = 0;
  const now = () => ({ mono, wall: mono });
  const reads: ((row: LinkRow) => void)[] = [];
  let asked = () => {};
  const cache = createLinkCache({ maxEntries: 10, maxBytes: 1_000_000 });
  const readLink = () =>
    new Promise<LinkRow>((answer) => {
      reads.push(answer);
      asked();
    });
  const loader = createLoader({ cache, readLink, ttlMs: TTL, negativeTtlMs: 100, now, random: () => 0 });
  const lookup = createLinkLookup({ cache, loader, ttlMs: TTL });
  const ring = createClickRing(10);
  const hotPath = createHotPath({ lookup, ring, now, debugEntryAge: false, onLoadError: () => {} });
  return {
    reads,
    lookup,
    ring,
    hotPath,
    sync: () => lookup.synced(now()),
    find: () => lookup.find("abc", mono, mono),
    advance: (ms: number) => (mono += ms),
    nextRead: () =>
      new Promise<void>((resolve) => {
        asked = resolve;
      }),
  };
}

describe("a flush", () => {
  test("lets the reads under way answer who asked before, and nobody after", async () => {
    const { reads, lookup, sync, find } = createWorld();
    const early = lookup.load("abc");
    lookup.flush();
    sync();
    const late = lookup.load("abc");
    expect(reads).toHaveLength(2);
    reads[0]?.(OLD);
    expect((await early).kind).toBe("active");
    expect(find()).toBeUndefined();
    reads[1]?.(REVOKED);
    expect((await late).kind).toBe("revoked");
    expect(find()?.kind).toBe("revoked");
  });

  test("fences what is read after it, until the log has been read anew", async () => {
    const { reads, lookup, sync, find } = createWorld();
    sync();
    lookup.flush();
    const load = lookup.load("abc");
    reads[0]?.(OLD);
    await load;
    expect(find()).toBeUndefined();
    sync();
    expect(find()?.target).toBe("https://old.example/");
  });
});

describe("an answer of the database that comes after a TTL, to a process that was stopped meanwhile", () => {
  test("is not used: the link is read again", async () => {
    const { reads, hotPath, advance, nextRead } = createWorld();
    const found = hotPath.readThrough("abc");
    const again = nextRead();
    advance(TTL);
    reads[0]?.(OLD);
    await again;
    reads[1]?.(REVOKED);
    expect((await found)?.entry.kind).toBe("revoked");
  });

  test("twice in a row is the visitor's to try again", async () => {
    const { reads, hotPath, advance, nextRead } = createWorld();
    const found = hotPath.readThrough("abc");
    const again = nextRead();
    advance(TTL);
    reads[0]?.(OLD);
    await again;
    advance(TTL);
    reads[1]?.(OLD);
    expect(await found).toBeNull();
    expect(reads).toHaveLength(2);
  });
});

describe("a visitor who left while the link was read", () => {
  /** Returns what the visitor was given. */
  async function visit(
    hotPath: ReturnType<typeof createHotPath>,
    left: boolean,
    answer: () => void,
  ): Promise<string[]> {
    const given: string[] = [];
    const asker: Asker = {
      ...{ clicks: true, rawHeaders: [], address: undefined, isOver: () => left },
      redirect: (target) => void given.push(target),
      show: (page) => void given.push(page),
    };
    hotPath.follow(asker, "abc");
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    return given;
  }

  test("is given nothing, and is no click", async () => {
    const { reads, hotPath, ring, sync } = createWorld();
    sync();
    expect(await visit(hotPath, true, () => reads[0]?.(OLD))).toEqual([]);
    expect([ring.stats().accepted, hotPath.counts().redirect]).toEqual([0, 0]);
  });

  test("control: one who stayed is", async () => {
    const { reads, hotPath, ring, sync } = createWorld();
    sync();
    expect(await visit(hotPath, false, () => reads[0]?.(OLD))).toEqual(["https://old.example/"]);
    expect([ring.stats().accepted, hotPath.counts().redirect]).toEqual([1, 1]);
  });
});
