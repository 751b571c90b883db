// The cache, the loads and the feed as one state machine, against a model of the truth: any interleaving of reads that
// take their time, revocations, a feed that lags, and clocks that run on.
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import type { LinkRow } from "../domain/entry.ts";
import { createLinkCache } from "./link-cache.ts";
import { createLinkLookup } from "./link-lookup.ts";
import { createLoader } from "./loader.ts";

const TTL = 100;
const CODES = ["aaa", "bbb"] as const;
type Code = (typeof CODES)[number];

type Step =
  | { do: "ask" | "revoke"; code: Code }
  | { do: "answer" }
  | { do: "snapshot" }
  | { do: "sync" | "flush" }
  | { do: "wait"; ms: number };

/** A flush forgets all that went before, so it is rare: most runs need several steps in a row to come to a danger. */
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("ask" as const), code: fc.constantFrom(...CODES) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("revoke" as const), code: fc.constantFrom(...CODES) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("answer" as const, "snapshot" as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("sync" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("flush" as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 60 }) }) },
  ) as fc.Arbitrary<Step>,
  // Without `size`, fast-check keeps its arrays to ten steps, too few for most dangers.
  { maxLength: 60, size: "max" },
);

/** `sound` is false for the broken twin, which reads the log and applies nothing of it. */
class World {
  #mono = 0;
  readonly #version: Record<Code, number> = { aaa: 1, bbb: 1 };
  readonly #revokedAt: Partial<Record<Code, number>> = {};
  readonly #appliedAt: Partial<Record<Code, number>> = {};
  readonly #log: { code: Code; version: number }[] = [];
  #applied = 0;
  readonly #reads: { code: Code; row: LinkRow | null; answer: (row: LinkRow) => void }[] = [];
  readonly #cache = createLinkCache({ maxEntries: 10, maxBytes: 1_000_000 });
  readonly #loader = createLoader({
    cache: this.#cache,
    readLink: (code) => new Promise((answer) => this.#reads.push({ code: code as Code, row: null, answer })),
    ttlMs: TTL,
    negativeTtlMs: 10,
    now: () => this.#now(),
    random: () => 0,
  });
  readonly #lookup;
  readonly #sound: boolean;
  readonly violations: string[] = [];

  constructor(sound: boolean) {
    this.#sound = sound;
    this.#lookup = createLinkLookup({ cache: this.#cache, loader: this.#loader, ttlMs: TTL });
  }

  #now() {
    return { mono: this.#mono, wall: this.#mono };
  }

  async step(step: Step): Promise<void> {
    if (step.do === "wait") this.#mono += step.ms;
    else if (step.do === "ask") this.#ask(step.code);
    else if (step.do === "revoke") this.#revoke(step.code);
    else if (step.do === "snapshot") this.#snapshot();
    else if (step.do === "answer") await this.#answer();
    else if (step.do === "sync") this.#sync();
    else this.#lookup.flush();
  }

  /** A request: from memory where the rule allows it, else by a read whose answer is judged when it comes. */
  #ask(code: Code): void {
    const askedAt = this.#mono;
    const entry = this.#lookup.find(code, this.#mono, this.#mono);
    if (entry) {
      this.#judge(code, entry.kind === "active", askedAt);
      return;
    }
    this.#lookup.load(code).then(
      (loaded) => {
        if (this.#lookup.isYoung(loaded, this.#mono, this.#mono)) this.#judge(code, loaded.kind === "active", askedAt);
      },
      () => {},
    );
  }

  /** A request that started after the change was applied, or a TTL after its commit, must not get the old target. */
  #judge(code: Code, old: boolean, askedAt: number): void {
    if (!old) return;
    const appliedAt = this.#appliedAt[code];
    const revokedAt = this.#revokedAt[code];
    if (appliedAt !== undefined && askedAt > appliedAt) this.violations.push(`${code} after it was applied`);
    if (revokedAt !== undefined && askedAt >= revokedAt + TTL) this.violations.push(`${code} a TTL after the commit`);
  }

  #revoke(code: Code): void {
    if (this.#version[code] === 2) return;
    this.#mono += 1;
    this.#version[code] = 2;
    this.#revokedAt[code] = this.#mono;
    this.#log.push({ code, version: 2 });
  }

  /** The oldest read under way reaches the database now. */
  #snapshot(): void {
    const read = this.#reads.find(({ row }) => row === null);
    if (read) read.row = this.#rowOf(read.code);
  }

  #rowOf(code: Code): LinkRow {
    const active = this.#version[code] === 1;
    return {
      target: active ? "https://old.example/" : null,
      state: active ? "ACTIVE" : "REVOKED",
      version: this.#version[code],
      remainingMs: null,
      owner: "ann",
    };
  }

  async #answer(): Promise<void> {
    const read = this.#reads.shift();
    if (!read) return;
    read.answer(read.row ?? this.#rowOf(read.code));
    await new Promise(setImmediate);
  }

  #sync(): void {
    const changes = this.#log
      .slice(this.#applied)
      .map((change, index) => ({ ...change, seq: this.#applied + index + 1 }));
    this.#applied = this.#log.length;
    if (this.#sound) this.#lookup.apply(changes);
    for (const { code } of changes) this.#appliedAt[code] = this.#mono;
    this.#lookup.synced(this.#now());
    this.#mono += 1;
  }
}

async function violationsOf(sound: boolean, list: readonly Step[]): Promise<string[]> {
  const world = new World(sound);
  for (const step of list) await world.step(step);
  return world.violations;
}

test("no interleaving serves an old target after its revocation was applied, or a TTL after its commit", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => expect(await violationsOf(true, list)).toEqual([])),
    { numRuns: 150 },
  );
});

test("control: the same machine without applying changes is caught", async () => {
  const outcome = await fc.check(
    fc.asyncProperty(steps, async (list) => (await violationsOf(false, list)).length === 0),
    { numRuns: 150 },
  );
  expect(outcome.failed).toBe(true);
});
