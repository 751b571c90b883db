// Who gets a code, when many want it at once or a random one is taken already.
import { Problem } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, mapConcurrently, readMetric, type TestDatabase } from "@linkfence/testkit";
import { startApiWorld } from "../../services/write/src/api-world.fixture.ts";
import { createCounts } from "../../services/write/src/counts.ts";
import { draftLink } from "../../services/write/src/domain/link.ts";
import { createLinkStore } from "../../services/write/src/store/links.ts";
import type { EvidenceCase } from "./report.ts";

const CREATORS = 16;
const LINKS_EACH = 50;
const ALIAS = "contested";
const QUERY_TIMEOUT_MS = 10_000;

/** What one creator is told. */
type Answer = "created" | "alias-taken" | `unexpected: ${string}`;

/** One creator of the alias, with a target of its own. */
type Claim = (target: string) => Promise<Answer>;

/** Lets sixteen creators claim the alias at once. `overwritten` were told that it is theirs and find another target. */
async function contest(claim: Claim, readTarget: () => Promise<string | undefined>) {
  const targets = Array.from({ length: CREATORS }, (_, n) => `https://example.com/${n}`);
  const answers = await Promise.all(targets.map(claim));
  const stored = await readTarget();
  const winners = targets.filter((_, n) => answers[n] === "created");
  const count = (answer: Answer) => answers.filter((given) => given === answer).length;
  return {
    created: count("created"),
    taken: count("alias-taken"),
    overwritten: winners.filter((target) => target !== stored).length,
  };
}

export const a1: EvidenceCase = {
  id: "A1",
  shows: "sixteen creators of one alias: one gets it and keeps it, fifteen are told that it is taken",
  async run(report) {
    const world = await startApiWorld();
    try {
      const claim: Claim = async (target) => {
        const { status, json } = await world.create({ target, alias: ALIAS });
        if (status === 201) return "created";
        return status === 409 && json.code === "alias-taken" ? "alias-taken" : `unexpected: ${status}`;
      };
      const outcome = await contest(claim, async () => (await world.rowsOf(ALIAS))[0]);
      report.check("creators", outcome, { created: 1, taken: CREATORS - 1, overwritten: 0 });
      report.check("rows", await world.linkCount(), 1);
    } finally {
      await world.stop();
    }
  },
};

export const nc1: EvidenceCase = {
  id: "NC1",
  shows:
    "creators who look first and update on conflict are all told that the alias is theirs, and fifteen lose their target",
  control: true,
  async run(report) {
    await withMain(async ({ database, db }) => {
      await database.sql`CREATE TABLE naive_link (LIKE link INCLUDING ALL)`;
      const outcome = await contest(createNaiveClaim(db), async () => {
        const [row] = await database.sql<{ target: string }[]>`SELECT target FROM naive_link WHERE code = ${ALIAS}`;
        return row?.target;
      });
      report.check("creators", outcome, { created: CREATORS, taken: 0, overwritten: CREATORS - 1 });
    });
  },
};

/** Looks whether the alias is free, and then takes it; all creators have looked before the first one takes. */
function createNaiveClaim(db: Database): Claim {
  const barrier = createBarrier(CREATORS);
  return async (target) => {
    const taken = await db.run((sql) => sql`SELECT 1 FROM naive_link WHERE code = ${ALIAS}`);
    await barrier();
    if (taken.length > 0) return "alias-taken";
    await db.run(
      (sql) => sql`
        INSERT INTO naive_link (code, target, owner, kind, created_by) VALUES (${ALIAS}, ${target}, 'ann', 'ALIAS', 'k')
        ON CONFLICT (code) DO UPDATE SET target = excluded.target`,
    );
    return "created";
  };
}

/** Resolves for all callers when the last of `count` has called. */
function createBarrier(count: number): () => Promise<void> {
  let arrived = 0;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    arrived += 1;
    if (arrived === count) open();
    return opened;
  };
}

export const a2: EvidenceCase = {
  id: "A2",
  shows:
    "a random code that is taken is left to its owner and another one is drawn; five in a row end the creation with nothing written",
  async run(report) {
    await withMain(async ({ database, db }) => {
      await database.sql`INSERT INTO link (code, target, owner, kind, created_by) VALUES
        ('taken-one', 'https://one.example/', 'bob', 'ALIAS', 'k'),
        ('taken-two', 'https://two.example/', 'bob', 'ALIAS', 'k')`;
      const existing = await readLinks(database);
      const draw = (codes: string[]) => createScripted(db, codes);

      const third = await draw(["taken-one", "taken-two", "free-code"]);
      report.check("the third code drawn is free", third, {
        outcome: "free-code",
        drawn: 3,
        collisions: 2,
        created: 1,
      });
      const created = { "free-code": "https://new.example/", ...existing };
      report.check("links afterwards", await readLinks(database), created);

      const fifth = await draw(Array(6).fill("taken-one"));
      report.check("five in a row", fifth, { outcome: "code-space-exhausted", drawn: 5, collisions: 5, created: 0 });
      report.check("links afterwards", await readLinks(database), created);
    });
  },
};

/** Creates one link with codes from a list instead of random ones. Returns its code or the refusal's. */
async function createScripted(db: Database, codes: readonly string[]) {
  const counts = createCounts();
  let drawn = 0;
  const newCode = () => codes[drawn++] ?? "the-list-is-at-its-end";
  const draft = draftLink({ target: "https://new.example/" }, { ownHosts: [], privateHosts: "allow", now: 0 });
  const outcome = await createLinkStore({ db, counts, newCode })
    .create(draft, { owner: "ann", keyId: "k" })
    .catch((error: unknown) => {
      if (error instanceof Problem) return error;
      throw error;
    });
  return { outcome: outcome.code, drawn, collisions: counts.collisions, created: counts.created.RANDOM };
}

export const a3: EvidenceCase = {
  id: "A3",
  shows: "sixteen creators of fifty links each: eight hundred codes, each with the target of whoever was told it",
  async run(report) {
    const world = await startApiWorld();
    try {
      const targets = Array.from({ length: CREATORS * LINKS_EACH }, (_, n) => `https://example.com/${n}`);
      const startedAt = performance.now();
      const answers = await mapConcurrently(targets, CREATORS, (target) => world.create({ target }));
      const ms = performance.now() - startedAt;
      const told = new Map(answers.map(({ json }, index) => [String(json.code), targets[index]]));
      report.check("created", answers.filter(({ status }) => status === 201).length, targets.length);
      report.check("distinct codes", told.size, targets.length);
      const stored = await readLinks(world.database);
      report.check("rows", Object.keys(stored).length, targets.length);
      const wrong = [...told].filter(([code, target]) => stored[code] !== target);
      report.check("codes that lead elsewhere", wrong, []);
      report.note(`collisions: ${await readMetric(world.write, "linkfence_code_collisions_total")}`);
      report.figure(`${targets.length} links in ${ms.toFixed(0)} ms`);
    } finally {
      await world.stop();
    }
  },
};

/** Runs `use` on a main database of its own, with a connection for each creator. */
async function withMain(use: (main: { database: TestDatabase; db: Database }) => Promise<void>): Promise<void> {
  const database = await createTestDatabase("main");
  const options = { applicationName: "evidence", max: CREATORS, queryTimeoutMs: QUERY_TIMEOUT_MS };
  const db = createDatabase({ url: database.url, ...options });
  try {
    await use({ database, db });
  } finally {
    await db.close();
    await database.drop();
  }
}

/** Every link's target, by code. */
async function readLinks({ sql }: TestDatabase): Promise<Record<string, string>> {
  const rows = await sql<{ code: string; target: string }[]>`SELECT code, target FROM link ORDER BY code`;
  return Object.fromEntries(rows.map(({ code, target }) => [code, target]));
}
