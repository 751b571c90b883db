import { describe, expect, test } from "@jest/globals";
import type { LinkRow } from "../domain/entry.ts";
import { createLinkCache, type LinkCache } from "./link-cache.ts";
import { createLoader, StaleRead } from "./loader.ts";

const OLD: LinkRow = { target: "https://old.example/", state: "ACTIVE", version: 1, remainingMs: null, owner: "ann" };
const REVOKED: LinkRow = { target: null, state: "REVOKED", version: 2, remainingMs: null, owner: "ann" };

/** A loader whose reads the test answers one by one, on a clock that the test moves. */
function createWorld(wrap: (cache: LinkCache) => LinkCache = (cache) => cache) {
  const reads: { code: string; answer: (row: LinkRow | null) => void; fail: (error: Error) => void }[] = [];
  let mono = 0;
  const cache = wrap(createLinkCache({ maxEntries: 100, maxBytes: 1_000_000 }));
  const loader = createLoader({
    cache,
    readLink: (code) => new Promise((answer, fail) => reads.push({ code, answer, fail })),
    ttlMs: 1000,
    negativeTtlMs: 100,
    now: () => ({ mono, wall: mono }),
    random: () => 0,
  });
  loader.synced({ mono, wall: mono });
  /** What applying a change does, in one synchronous turn. */
  const apply = (code: string, version: number) => {
    cache.invalidate(code, version);
    loader.detach(code);
  };
  return { reads, cache, loader, apply, advance: (ms: number) => (mono += ms) };
}

describe("loads", () => {
  test("of one code at the same time share one read", async () => {
    const { reads, loader } = createWorld();
    const [one, two] = [loader.load("abc"), loader.load("abc")];
    expect(reads).toHaveLength(1);
    reads[0]?.answer(OLD);
    expect(await one).toBe(await two);
    expect(loader.stats()).toMatchObject({ loads: 1, joined: 1, underWay: 0 });
  });

  test("of one code are not shared where the log was last read a TTL ago: nobody waits for this process any more", async () => {
    const { reads, loader, advance } = createWorld();
    advance(500);
    const early = loader.load("abc");
    advance(499);
    const shared = loader.load("abc");
    expect(reads).toHaveLength(1);
    advance(1);
    const late = loader.load("abc");
    expect(reads).toHaveLength(2);
    reads[0]?.answer(OLD);
    reads[1]?.answer(REVOKED);
    expect([(await early).kind, (await shared).kind, (await late).kind]).toEqual(["active", "active", "revoked"]);
  });

  test("of one code are not shared where everything was forgotten, until the log is read anew", () => {
    const { reads, loader } = createWorld();
    loader.detachAll();
    for (const asked of [1, 2]) {
      void loader.load("abc");
      expect(reads).toHaveLength(asked);
    }
    loader.synced({ mono: 0, wall: 0 });
    void loader.load("abc");
    expect(reads).toHaveLength(2);
  });

  test("that read before a revocation and answer after it are given to the earlier asker, and never kept", async () => {
    const { reads, cache, loader, apply } = createWorld();
    const early = loader.load("abc");
    apply("abc", 2);
    reads[0]?.answer(OLD);
    expect((await early).target).toBe("https://old.example/");
    expect(cache.get("abc")).toBeUndefined();
    expect(loader.stats().fillsRefused).toBe(1);
  });

  test("asked for after a change was applied never join a read that began before it", async () => {
    const { reads, loader, apply } = createWorld();
    const early = loader.load("abc");
    apply("abc", 2);
    const late = loader.load("abc");
    expect(reads).toHaveLength(2);
    reads[0]?.answer(OLD);
    reads[1]?.answer(REVOKED);
    expect([(await early).kind, (await late).kind]).toEqual(["active", "revoked"]);
  });

  test("control: with plain sharing of reads, a request after the change is given the old target", async () => {
    const { reads, loader, cache } = createWorld();
    const shared = new Map<string, ReturnType<typeof loader.load>>();
    const plain = (code: string) => {
      const running = shared.get(code) ?? loader.load(code);
      shared.set(code, running);
      return running;
    };
    const early = plain("abc");
    cache.invalidate("abc", 2);
    loader.detach("abc");
    const late = plain("abc");
    reads[0]?.answer(OLD);
    expect((await late).target).toBe("https://old.example/");
    expect(await early).toBe(await late);
  });

  test("control: without the marks and the versions, the old target is kept after the revocation", async () => {
    const { reads, cache, loader } = createWorld((real) => ({ ...real, invalidate: () => {} }));
    const early = loader.load("abc");
    // The change is applied, and the read under way is not marked.
    cache.invalidate("abc", 2);
    reads[0]?.answer(OLD);
    await early;
    expect(cache.get("abc")?.target).toBe("https://old.example/");
  });

  test("that began longer than a TTL ago are joined by nobody: their process may have been stopped", async () => {
    const { reads, loader, advance } = createWorld();
    void loader.load("abc");
    advance(1000);
    void loader.load("abc");
    expect(reads).toHaveLength(2);
  });

  test("that answer with an older version than is known, without having been overtaken, are refused", async () => {
    const { reads, loader, apply } = createWorld();
    apply("abc", 2);
    const load = loader.load("abc");
    reads[0]?.answer(OLD);
    await expect(load).rejects.toBeInstanceOf(StaleRead);
  });

  test("make entries whose age and remaining life count from before the read was sent", async () => {
    const { reads, loader, advance } = createWorld();
    advance(100);
    const load = loader.load("abc");
    advance(700);
    reads[0]?.answer({ ...OLD, remainingMs: 5000 });
    expect(await load).toMatchObject({ loadedAt: { mono: 100, wall: 100 }, expiresAtMono: 5100 });
  });

  test("that fail are told to all who asked, and not remembered", async () => {
    const { reads, cache, loader } = createWorld();
    const both = Promise.allSettled([loader.load("abc"), loader.load("abc")]);
    reads[0]?.fail(new Error("away"));
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(cache.get("abc")).toBeUndefined();
    void loader.load("abc");
    expect(reads).toHaveLength(2);
  });

  test("that find nothing are remembered for a while, unless a code may have come into being meanwhile", async () => {
    const { reads, cache, loader } = createWorld();
    const plain = loader.load("abc");
    reads[0]?.answer(null);
    expect((await plain).ttlMs).toBe(100);
    expect(cache.get("abc")?.kind).toBe("unknown");
    const doubted = loader.load("def");
    loader.distrustUnknown();
    const later = loader.load("def");
    expect(reads).toHaveLength(3);
    reads[1]?.answer(null);
    await doubted;
    expect(cache.get("def")).toBeUndefined();
    reads[2]?.answer(OLD);
    expect((await later).kind).toBe("active");
  });

  test("that find nothing, and were doubted meanwhile, are not remembered although nobody asked again", async () => {
    const { reads, cache, loader } = createWorld();
    const doubted = loader.load("abc");
    loader.distrustUnknown();
    reads[0]?.answer(null);
    expect((await doubted).kind).toBe("unknown");
    expect(cache.get("abc")).toBeUndefined();
  });

  test("that find a link are kept, however often a code comes into being", async () => {
    const { reads, cache, loader } = createWorld();
    const load = loader.load("abc");
    loader.distrustUnknown();
    reads[0]?.answer(OLD);
    await load;
    expect(cache.get("abc")?.kind).toBe("active");
  });
});
