// Reads of a link that something overtakes: a revocation, or the loss of all that was remembered. The row has been
// read, and its answer is held back until that has happened. Each rule once as it is, and once taken out.
import { createTestDatabase, waitFor } from "@linkfence/testkit";
import type { Loader } from "../../services/redirect/src/cache/loader.ts";
import type { Entry } from "../../services/redirect/src/domain/entry.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type Scene, startRedirectInProcess, type Weakening, withRedirectInProcess } from "./redirect-in-process.ts";
import type { EvidenceCase } from "./report.ts";

/** Far beyond the length of any of these: nothing ends by itself. */
const LONG_TTL_MS = 60_000;
/** Where the end of a TTL is part of it. */
const SHORT_TTL_MS = 2000;

const withoutMarks: Weakening = { loader: (real) => ({ ...real, detach: () => {}, detachAll: () => {} }) };
/** What was kept is still dropped; that a newer version exists is not remembered. */
const withoutVersions: Weakening = {
  cache: (real) => ({ ...real, invalidate: (code: string) => real.invalidate(code, 0) }),
};
const withoutEither: Weakening = { ...withoutMarks, ...withoutVersions };

/** The redirect, its database, and a link that is not in memory. */
function withLink(weakening: Weakening, ttlMs: number, scenario: (scene: Scene, code: string) => Promise<void>) {
  return withRedirectInProcess({ ttlMs, weakening }, async (scene) => {
    const [code = ""] = await insertLinks(scene.database.sql, "link", 1);
    await scenario(scene, code);
  });
}

/** A request whose row is read, whose link is revoked, and whose answer waits until the change was applied. */
async function overtake({ redirect, database }: Scene, code: string) {
  const { rowRead, release } = redirect.holdNextRead();
  const early = redirect.get(code);
  await rowRead;
  const applied = redirect.applied(code);
  await revokeLinks(database.sql, code);
  await applied;
  return { early, release };
}

/** R4 and NC3: the answer arrives after the change was applied, and then somebody asks again. */
async function fillAfterChange({ redirect, database }: Scene, code: string) {
  const { early, release } = await overtake({ redirect, database }, code);
  release();
  const { status } = await early;
  const next = await redirect.get(code);
  const { loads, fillsRefused } = redirect.lookup.stats();
  return { early: status, next: next.status, loads, fillsRefused };
}

export const r4: EvidenceCase = {
  id: "R4",
  shows: "a read that began before a revocation and ends after it was applied is kept by nobody",
  async run(report) {
    // Who asked before the change may be given the old target. Without marks it cannot be told that he did.
    const defences = [
      ["as it is", {}, 302],
      ["with versions alone", withoutMarks, 503],
      ["with marks alone", withoutVersions, 302],
    ] as const;
    for (const [how, weakening, early] of defences) {
      await withLink(weakening, LONG_TTL_MS, async (scene, code) => {
        const seen = await fillAfterChange(scene, code);
        report.check(`${how}: overtaken request, next request, loads, fills refused`, Object.values(seen), [
          ...[early, 410, 2, 1],
        ]);
      });
    }
  },
};

export const nc3: EvidenceCase = {
  id: "NC3",
  shows: "without versions and marks such a read is kept, and the revoked link lives on until its TTL",
  control: true,
  async run(report) {
    await withLink(withoutEither, SHORT_TTL_MS, async (scene, code) => {
      const askedAt = performance.now();
      const seen = await fillAfterChange(scene, code);
      report.check("overtaken request, next request, loads, fills refused", Object.values(seen), [302, 302, 1, 0]);
      const servedMs = await scene.redirect.followUntilGone(code, askedAt);
      report.check("the old target is served until its TTL at the longest", servedMs < SHORT_TTL_MS, true);
      report.figure(`old target served for ${servedMs.toFixed(0)} ms after it was read (TTL ${SHORT_TTL_MS} ms)`);
    });
  },
};

/** R4v: links are read from a copy of the database that has not heard of the revocation yet. */
async function readFromLaggingCopy(weakening: Weakening) {
  const [database, copy] = [await createTestDatabase("main"), await createTestDatabase("main")];
  try {
    for (const { sql } of [database, copy]) await insertLinks(sql, "link", 1);
    const options = { url: database.url, linksUrl: copy.url, ttlMs: LONG_TTL_MS, weakening };
    const redirect = await startRedirectInProcess(options);
    try {
      const before = await redirect.get("link1");
      const applied = redirect.applied("link1");
      await revokeLinks(database.sql, "link1");
      await applied;
      const lagging = [await redirect.get("link1"), await redirect.get("link1")];
      await revokeLinks(copy.sql, "link1");
      const level = await redirect.get("link1");
      return [before, ...lagging, level].map(({ status }) => status);
    } finally {
      await redirect.close();
    }
  } finally {
    await Promise.all([database.drop(), copy.drop()]);
  }
}

export const r4v: EvidenceCase = {
  id: "R4v",
  shows: "an answer older than a change already applied, as a lagging copy of the database gives it, is never used",
  async run(report) {
    const seen = await readFromLaggingCopy({});
    report.check(
      "before the revocation, twice after it was applied, once the copy is level",
      seen,
      [302, 503, 503, 410],
    );
  },
};

export const r4vc: EvidenceCase = {
  id: "R4vc",
  shows: "without versions the lagging answer is given, kept, and given again when the copy is level",
  control: true,
  async run(report) {
    const seen = await readFromLaggingCopy(withoutVersions);
    report.check(
      "before the revocation, twice after it was applied, once the copy is level",
      seen,
      [302, 302, 302, 302],
    );
  },
};

/** R4m: a process that the registry has lost starts anew at the head of the log, behind a revocation it never applies. */
async function flushUnderWay({ redirect, database }: Scene, code: string) {
  const { rowRead, release } = redirect.holdNextRead();
  const early = redirect.get(code);
  await rowRead;
  const flushed = redirect.flushed("registration-lost");
  await database.sql.begin(async (tx) => {
    await tx`DELETE FROM redirect_instance`;
    await tx`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`;
  });
  await flushed;
  await redirect.caughtUp();
  release();
  const { status } = await early;
  const next = await redirect.get(code);
  return [status, next.status, redirect.lookup.stats().loads];
}

export const r4m: EvidenceCase = {
  id: "R4m",
  shows:
    "a read that is under way when everything is forgotten is kept by nobody, although its change is never applied",
  async run(report) {
    await withLink({}, LONG_TTL_MS, async (scene, code) => {
      report.check("overtaken request, next request, loads", await flushUnderWay(scene, code), [302, 410, 2]);
    });
  },
};

export const r4mc: EvidenceCase = {
  id: "R4mc",
  shows: "without marks it is kept, since its version was forgotten with everything else",
  control: true,
  async run(report) {
    await withLink(withoutMarks, LONG_TTL_MS, async (scene, code) => {
      report.check("overtaken request, next request, loads", await flushUnderWay(scene, code), [302, 302, 1]);
    });
  },
};

/** R6: somebody asks after the change was applied, while the read that began before it is still under way. */
async function askDuringOldRead(scene: Scene, code: string) {
  const { redirect } = scene;
  const { early, release } = await overtake(scene, code);
  const late = redirect.get(code);
  await waitFor("the second request", () => redirect.asked() === 2);
  release();
  const { loads, joined } = redirect.lookup.stats();
  return { early: (await early).status, late: (await late).status, loads, joined };
}

export const r6: EvidenceCase = {
  id: "R6",
  shows: "a request that arrives after a change was applied does not share a read that began before it",
  async run(report) {
    await withLink({}, LONG_TTL_MS, async (scene, code) => {
      const seen = await askDuringOldRead(scene, code);
      report.check("earlier request, later request, loads, joined", Object.values(seen), [302, 410, 2, 0]);
    });
  },
};

const plainSingleFlight: Weakening = {
  loader(real) {
    const underWay = new Map<string, Promise<Entry>>();
    const ask: Loader["ask"] = (code, told) => {
      const shared = underWay.get(code) ?? real.load(code).finally(() => underWay.delete(code));
      underWay.set(code, shared);
      shared.then(
        (entry) => told(entry, null),
        (error: unknown) => told(null, error),
      );
    };
    return { ...real, ask };
  },
};

export const r6c: EvidenceCase = {
  id: "R6c",
  shows: "with plain sharing of reads it is given the old target",
  control: true,
  async run(report) {
    await withLink(plainSingleFlight, LONG_TTL_MS, async (scene, code) => {
      const { early, late, loads } = await askDuringOldRead(scene, code);
      report.check("earlier request, later request, loads", [early, late, loads], [302, 302, 1]);
    });
  },
};
