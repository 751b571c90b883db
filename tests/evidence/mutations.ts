// Rules of the product, each with the change that takes it out. Applied to a copy, each has to turn a case red.

/** One replacement in a file; `find` occurs exactly once in it. */
export type Edit = { file: string; find: string; replace: string };

export type Mutation = {
  name: string;
  /** What is taken out, as a sentence without a full stop. */
  change: string;
  edits: readonly Edit[];
  /** Experiments to run against it; at least one has to fail. */
  cases: readonly string[];
};

const LOADER = "services/redirect/src/cache/loader.ts";
const REVOCATION = "packages/db/migrations/main/0003_revocation_numbers.sql";
const LOOKUP = "services/redirect/src/cache/link-lookup.ts";
const EXPORT_WRITER = "services/click-ingest/src/exports/write-file.ts";

export const mutations: readonly Mutation[] = [
  {
    name: "no-version-guard",
    change: "the cache takes an answer that is older than a version it has heard of",
    edits: [
      {
        file: "services/redirect/src/cache/link-cache.ts",
        find: "      if (entry.version < (versions?.get(entry.code) ?? 0)) return false;\n",
        replace: "",
      },
    ],
    cases: ["R4", "R4v", "R6"],
  },
  {
    name: "no-dirty-mark",
    change: "a read that a change has overtaken is kept like any other",
    edits: [
      {
        file: LOADER,
        find: "if (!load.dirty && cache.put(entry)) return true;",
        replace: "if (cache.put(entry)) return true;",
      },
    ],
    cases: ["R4", "R4m", "R6"],
  },
  {
    name: "plain-single-flight",
    change: "whoever asks joins the read that is under way, however many changes were applied since it began",
    edits: [
      {
        file: LOADER,
        find: "    load.dirty = true;\n    underWay.delete(code);\n",
        replace: "    load.dirty = true;\n",
      },
    ],
    cases: ["R4", "R4m", "R6"],
  },
  {
    name: "loaded-after-the-read",
    change: "an entry's age counts from when its row arrived, not from before it was asked for",
    edits: [{ file: LOADER, find: "loadedAt: load.startedAt,", replace: "loadedAt: now()," }],
    cases: ["R3", "F1"],
  },
  {
    name: "timer-fence",
    change: "a timer says when what is in memory is too old, instead of the clocks at the moment of the answer",
    edits: [
      {
        file: LOOKUP,
        find: "if (!isServable(entry, mono, wall, syncedAt)) {",
        replace: 'if (fenced || (entry.kind === "unknown" && !isServable(entry, mono, wall, syncedAt))) {',
      },
      {
        file: LOOKUP,
        find: "      syncedAt = moment;\n",
        replace:
          "      syncedAt = moment;\n      fenced = false;\n      clearTimeout(fence);\n      fence = setTimeout(() => (fenced = true), ttlMs);\n",
      },
      {
        file: LOOKUP,
        find: "  let syncedAt = NEVER;\n",
        replace: "  let syncedAt = NEVER;\n  let fenced = true;\n  let fence: NodeJS.Timeout | undefined;\n",
      },
    ],
    cases: ["R7", "R7s"],
  },
  {
    name: "no-sync-fence",
    change: "entries are answered from memory however long the change log was not read",
    edits: [
      {
        file: "services/redirect/src/cache/freshness.ts",
        find: 'return entry.kind === "unknown" || isWithin(syncedAt, mono, wall, entry.ttlMs);',
        replace: "return syncedAt !== undefined;",
      },
    ],
    cases: ["R7", "R7s"],
  },
  {
    name: "no-entry-age",
    change: "entries are answered from memory however old they are, as long as the log is read",
    edits: [
      {
        file: "services/redirect/src/cache/freshness.ts",
        find: "  if (!isWithin(entry.loadedAt, mono, wall, entry.ttlMs)) return false;\n",
        replace: "",
      },
    ],
    cases: ["R3", "F2"],
  },
  {
    name: "lock-after-insert",
    change: "a revocation takes the lock after its number in the log, so that numbers and commits may differ in order",
    edits: [
      { file: REVOCATION, find: "  PERFORM pg_advisory_xact_lock(7106915);\n", replace: "" },
      {
        file: REVOCATION,
        find: "      v_last := seq;\n    ELSE\n",
        replace: "      v_last := seq;\n      PERFORM pg_advisory_xact_lock(7106915);\n    ELSE\n",
      },
    ],
    cases: ["R5"],
  },
  {
    name: "no-overlap-read",
    change: "the reader of the log trusts a number alone, not the row it remembers",
    edits: [
      {
        file: "packages/link-feed/src/cursor.ts",
        find: '  const cause = overlapFault(position.last, changes[0]);\n  if (cause) return { kind: "flush", cause };\n',
        replace: "",
      },
    ],
    cases: ["R9"],
  },
  {
    name: "new-ids-when-sent-again",
    change: "a batch of clicks gets new ids each time it is sent",
    edits: [
      {
        file: "services/redirect/src/clicks/click-sender.ts",
        find: "const outcome = await send(batch, halt.signal);",
        // The last twelve digits of an id, behind `"id":"` and its other 24 characters.
        replace:
          'const anew = () => Math.trunc(random() * 2 ** 47).toString(16).padStart(12, "0"); const frames = batch.frames.map((each) => Buffer.from(each.toString("latin1").replace(/(?<="id":".{24}).{12}/g, anew), "latin1")); const outcome = await send({ clicks: batch.clicks, frames }, halt.signal);',
      },
    ],
    cases: ["S4"],
  },
  {
    name: "lost-jobs-stay",
    change: "an export whose worker is not heard of any more is nobody else's to take up",
    edits: [
      {
        file: "packages/db/migrations/stats/0014_exports.sql",
        find: "   WHERE state = 'RUNNING' AND lease_until < v_now;",
        replace: "   WHERE false;",
      },
    ],
    cases: ["X1", "X2"],
  },
  {
    name: "drafts-stay",
    change: "an attempt that has failed leaves what it has written",
    edits: [{ file: EXPORT_WRITER, find: "      await draft.discard();\n", replace: "" }],
    cases: ["X6"],
  },
  {
    name: "rows-are-kept",
    change: "a worker keeps what it has written until the file is whole",
    edits: [
      {
        file: EXPORT_WRITER,
        find: "        const taken = lines.take(chunk);\n",
        replace: '        const taken = lines.take(chunk);\n        source.once("taken", () => taken);\n',
      },
    ],
    cases: ["X4"],
  },
];
