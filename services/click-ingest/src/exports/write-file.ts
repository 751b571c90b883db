// One attempt: a snapshot of the clicks, from the server through a counter of lines and, where that was ordered, gzip, into
// a draft of the file. Nobody is ahead of anybody by more than a few buffers: who is slow makes the others wait.
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { classifyError, errorCode, isServerError, type Snapshot, withSnapshot } from "@linkfence/db";
import { ExportFailure, storageFault } from "../domain/export-fault.ts";
import { estimateStatement, exportStatement } from "../store/export-query.ts";
import type { HeldJob, Progress } from "../store/export-work.ts";
import type { DraftFile, ExportFiles } from "./export-files.ts";
import { createLineEnds } from "./line-ends.ts";
import { createRoom } from "./room.ts";

export type WriterOptions = {
  files: ExportFiles;
  url: string;
  /** To connect, in ms. */
  connectTimeoutMs: number;
  /** Of an attempt, in ms. */
  timeoutMs: number;
  rowsMax: number;
  /** Bytes that the file of a job may have, as others have left it at this moment. */
  bytesMax: (id: string) => Promise<number>;
  /** Days before today whose clicks are kept. */
  retentionDays: number;
  /** Waits, before each further piece, for as long as others need the machine more. */
  giveWay: () => Promise<void> | undefined;
  /** ms since 1970 */
  now: () => number;
};
export type FileWriter = ReturnType<typeof createFileWriter>;
export type WrittenFile = { rows: number; bytes: number };

const DAY_MS = 86_400_000;
/** A quarter of the time that the best takes, for a file a tenth larger. */
const GZIP_LEVEL = 4;

/** Creates the writer of files. */
export function createFileWriter(options: WriterOptions) {
  const { files, url, connectTimeoutMs, timeoutMs, retentionDays, now } = options;

  /**
   * Writes the file of a job and publishes it under the job's name. `progress` is kept up to date meanwhile.
   * Rejects with `ExportFailure`, or with the signal's reason, and leaves no draft then.
   */
  async function write(job: HeldJob, progress: Progress, signal: AbortSignal): Promise<WrittenFile> {
    const fail = (error: unknown): never => {
      signal.throwIfAborted();
      throw asFailure(error);
    };
    const { room, draft } = await prepare(job).catch(fail);
    try {
      const snapshot = {
        url,
        applicationName: "linkfence-click-ingest-export",
        connectTimeoutMs,
        timeoutMs,
        signal,
      };
      const rows = await withSnapshot(snapshot, async (at) => {
        const [row] = await at.rows(estimateStatement(job, now() - retentionDays * DAY_MS));
        progress.estimated = Number(row?.rows ?? 0);
        return stream(at, job, draft, { progress, signal, room });
      });
      signal.throwIfAborted();
      await draft.publish();
      return { rows, bytes: draft.bytes() };
    } catch (error) {
      await draft.discard();
      return fail(error);
    }
  }

  async function prepare({ id, file }: HeldJob) {
    const room = createRoom(await options.bytesMax(id), () => options.bytesMax(id));
    return { room, draft: await files.create(file) };
  }

  type Course = { progress: Progress; signal: AbortSignal; room: () => number };

  async function stream(at: Snapshot, job: HeldJob, draft: DraftFile, { progress, signal, room }: Course) {
    const csv = job.format === "csv";
    const lines = createLineEnds({ quotes: csv });
    const header = csv ? 1 : 0;
    const source = at.copy(exportStatement(job, job.format));
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const taken = lines.take(chunk);
        progress.rows = Math.max(0, lines.lines() - header);
        progress.bytes = draft.bytes();
        if (progress.rows > options.rowsMax)
          return done(new ExportFailure("too-many-rows", `a file has at most ${options.rowsMax} clicks`));
        if (progress.bytes > room()) return done(new ExportFailure("storage-full", "there is no room for the file"));
        const wait = options.giveWay();
        if (wait) wait.then(() => done(null, taken), done);
        else done(null, taken);
      },
    });
    let broken: ExportFailure | undefined;
    draft.stream.once("error", (error) => {
      broken = Object.assign(storageFault(errorCode(error)), { cause: error });
    });
    const stages = job.gzip ? [source, count, createGzip({ level: GZIP_LEVEL })] : [source, count];
    await pipeline([...stages, draft.stream], { signal }).catch((error: unknown) => {
      throw broken ?? error;
    });
    // The stream ends when the last row has come, and the count comes behind it.
    await at.rows("SELECT 1");
    const rows = lines.lines() - header;
    // The server's count is of what it sent: another one is a fault of this program, and no file may go out with it.
    if (rows !== source.rowCount) throw new Error(`${source.rowCount} rows were sent and ${rows} lines written`);
    return rows;
  }

  return { write };
}

/** The snapshot's own deadline, or the server's, which is the same. */
function isTimeout(error: unknown): boolean {
  if (isServerError(error)) return errorCode(error) === "57014";
  return typeof error === "object" && error !== null && "name" in error && error.name === "TimeoutError";
}

/** What an attempt ended of, as its owner may know it. The cause is for the log. */
function asFailure(error: unknown): ExportFailure {
  if (error instanceof ExportFailure) return error;
  if (isTimeout(error)) return new ExportFailure("deadline", "the file could not be written in time", { cause: error });
  if (classifyError(error) !== "fatal" || isBroken(error))
    return new ExportFailure("database", "the clicks could not be read", { cause: error });
  return new ExportFailure("internal", "the export has a fault; the service's log says more", { cause: error });
}

/** How the driver tells, in words alone, that its connection is gone. */
function isBroken(error: unknown): boolean {
  return error instanceof Error && /connection (terminated|error)|timeout|premature close/i.test(error.message);
}
