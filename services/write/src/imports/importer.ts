// An upload, from its first byte to its answer. Lines are read, judged and committed batch by batch, and nothing is read
// while a batch is being committed, so that an import of any size takes the memory of one batch.
import { randomUUID } from "node:crypto";
import { setImmediate as others } from "node:timers/promises";
import { type ImportFormat, type ImportMapping, Problem } from "@linkfence/contracts";
import type { Counts } from "../counts.ts";
import { readColumns } from "../domain/import-columns.ts";
import { type JudgedLine, storable } from "../domain/import-line.ts";
import type { TargetRules } from "../domain/target.ts";
import { type ImportBatches, importInUse } from "../store/import-batches.ts";
import type { ImportLocks } from "../store/import-lock.ts";
import type { ImportRow } from "../store/import-rows.ts";
import type { ImportName, ImportStore } from "../store/imports.ts";
import type { Author } from "../store/link-rows.ts";
import { type Committer, createCommitter } from "./committer.ts";
import { contentDiffers, readFinished, readKnown } from "./continuation.ts";
import { parseFields } from "./csv-fields.ts";
import { createJudge, faultOf } from "./judge.ts";
import { createRecordStream, type RecordStream } from "./record-stream.ts";
import { atBeginning, createRecordReader } from "./records.ts";
import type { Upload } from "./upload.ts";

/** Some milliseconds of work, between which other requests get their turn. */
const BLOCK_LINES = 100;
/** Enough for a transaction to be worth its round trips; short enough that nobody waits for the locks of its aliases. */
const BATCH_LINES = 500;
/** The same in bytes of the file, for long lines; at work a line takes several times its size. */
const BATCH_BYTES = 1024 * 1024;
/** Rows that one statement removes: some ten milliseconds. */
const FORGET_PART = 5000;
/** Names of members that are kept. */
const IGNORED_MAX = 100;
const IGNORED_NAME_MAX = 100;

export type ImportOrder = {
  author: Author;
  /** By what the import is continued; an id must exist, a key may be new. Null for one that is new in any case. */
  name: ImportName | null;
  mapping: ImportMapping;
  format: ImportFormat;
  dryRun: boolean;
};

export type ImporterDeps = {
  store: ImportStore;
  batches: ImportBatches;
  locks: ImportLocks;
  rules: TargetRules;
  /** ms since 1970. */
  now: () => number;
  counts: Pick<Counts, "imports">;
};

/** `begun` is told the id as soon as the import exists, for whoever is told that it was broken off. */
export type Work = { order: ImportOrder; upload: Pick<Upload, "next">; begun: (row: ImportRow) => void };

/** Creates what carries uploads out. Its function resolves with the finished import, and whether it was finished before. */
export function createImporter({ store, batches, locks, rules, now, counts }: ImporterDeps) {
  async function run({ order, upload, begun }: Work): Promise<{ row: ImportRow; replayed: boolean }> {
    const known = order.name ? await store.find(order.author.owner, order.name) : undefined;
    if (!known && order.name && "id" in order.name) throw importNotFound();
    if (!known) return runNew({ order, upload, begun });
    refuseOtherWay(order, known);
    begun(known);
    if (known.finishedAt !== null) return replay(upload, known);
    return underLock(order, known.id, async (row, committer) => {
      if (row.finishedAt !== null) return replay(upload, row);
      const { hash, held } = await readKnown(upload, row);
      const reader = createRecordReader(row.format === "csv", { bytes: row.bytes, line: row.lastLine, hash });
      const stream = createRecordStream(upload, reader, held);
      if (row.columns && row.bytes === 0) await expectHeader(stream, order.mapping, row.columns);
      return finish(order, stream, committer);
    });
  }

  /** The import is entered when its header has been found good: a file that cannot be read leaves nothing behind. */
  async function runNew({ order, upload, begun }: Work): Promise<{ row: ImportRow; replayed: boolean }> {
    const { name, mapping, format, dryRun, author } = order;
    const stream = createRecordStream(upload, createRecordReader(format === "csv", atBeginning()), Buffer.alloc(0));
    const columns = format === "csv" ? await readHeader(stream, mapping) : null;
    const id = randomUUID();
    const entry = {
      ...{ id, mapping, format, dryRun, key: name && "key" in name ? name.key : null },
      columns: columns?.names ?? null,
      ignoredColumns: (columns?.ignored ?? []).slice(0, IGNORED_MAX).map(storableName),
    };
    if (!(await store.add(entry, author))) throw importInUse();
    return underLock(order, id, (row, committer) => {
      begun(row);
      return finish(order, stream, committer);
    });
  }

  async function underLock<T>(
    { author }: ImportOrder,
    id: string,
    work: (row: ImportRow, committer: Committer) => Promise<T>,
  ): Promise<T> {
    const lock = await locks.acquire(id);
    if (!lock) throw importInUse();
    let release = lock.release;
    try {
      const row = await store.beginAttempt(id, author.owner);
      const onRetry = () => {
        counts.imports.retries += 1;
      };
      const committer = createCommitter({ batches, locks, lock, row, onRetry });
      release = committer.release;
      return await work(row, committer);
    } finally {
      await release();
    }
  }

  /** Reads and commits what is left of a file. */
  async function finish({ author }: ImportOrder, stream: RecordStream, committer: Committer) {
    const { mapping, format, columns, dryRun, ignoredColumns } = committer.row();
    const ignored = new Set(ignoredColumns);
    const onIgnored = (names: readonly string[]) => {
      for (const name of names) if (ignored.size < IGNORED_MAX) ignored.add(storableName(name));
    };
    const judge = createJudge({ format, mapping, columns: columns ?? [], rules, now, onIgnored });
    let lines: JudgedLine[] = [];
    let bytes = 0;
    const commit = async (done: boolean) => {
      await committer.commit({ author, lines, to: stream.position(), ignored: [...ignored], done });
      lines = [];
      bytes = 0;
    };
    for (;;) {
      const records = await stream.next(BLOCK_LINES).catch(async (error: unknown) => {
        // Whatever ends the upload, the lines that are here are decided.
        if (lines.length > 0) await commit(false);
        throw error;
      });
      if (!records) break;
      lines.push(...judge(records));
      for (const record of records) bytes += record.bytes.length;
      if (lines.length >= BATCH_LINES || bytes >= BATCH_BYTES) await commit(false);
      else await others();
    }
    if (dryRun) {
      if (lines.length > 0) await commit(false);
      await committer.forgetAliases(FORGET_PART);
    }
    await commit(true);
    return { row: committer.row(), replayed: false };
  }

  return { run };
}

export type Importer = ReturnType<typeof createImporter>;

async function replay(upload: Pick<Upload, "next">, row: ImportRow) {
  await readFinished(upload, row);
  return { row, replayed: true };
}

/** @throws Problem 400 where the file has no header that its mapping can read */
async function readHeader(stream: RecordStream, mapping: ImportMapping) {
  const [header] = (await stream.next(1)) ?? [];
  if (!header) throw invalidHeader("required", "is missing: the first line must name the columns");
  const fault = faultOf(header);
  if (fault) throw new Problem(fault.code, `the header cannot be read: ${fault.message}`, fault.errors);
  return readColumns(mapping, parseFields([header.bytes])[0] ?? []);
}

async function expectHeader(stream: RecordStream, mapping: ImportMapping, names: readonly string[]): Promise<void> {
  const columns = await readHeader(stream, mapping);
  if (columns.names.join("\n") !== names.join("\n")) throw contentDiffers("has another header than before");
}

function refuseOtherWay(order: ImportOrder, row: ImportRow): void {
  for (const field of ["mapping", "format", "dryRun"] as const)
    if (order[field] !== row[field])
      throw contentDiffers(`was sent with ${field} ${String(row[field])} before`, "parameters");
}

function invalidHeader(rule: string, detail: string): Problem {
  return new Problem("invalid-request", `the header ${detail}`, [{ field: "header", rule, detail }]);
}

export function importNotFound(): Problem {
  return new Problem("not-found", "you have no import with this id");
}

function storableName(name: string): string {
  return storable(name, IGNORED_NAME_MAX);
}
