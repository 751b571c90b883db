// The uploads of one process: how many there may be at a time, what they are told when something breaks them off, and
// their end at a stop.
import { Problem } from "@linkfence/contracts";
import type { Request } from "express";
import type { Counts } from "../counts.ts";
import type { ImportRow } from "../store/import-rows.ts";
import type { Importer, ImportOrder } from "./importer.ts";
import { openUpload, UploadBroken } from "./upload.ts";

/** `broken` imports are kept as far as they came, and can be continued. */
export type ImportOutcome =
  | { kind: "finished" | "replayed"; row: ImportRow }
  | { kind: "broken"; id: string; problem: Problem };

export type ImportsOptions = {
  importer: Importer;
  counts: Pick<Counts, "imports">;
  /** Uploads at a time. */
  places: number;
  /** Bytes of a file at the most. */
  maxBytes: number;
  /** What a caller can do about an error of the database; undefined for everything else. */
  toProblem: (error: unknown) => Problem | undefined;
  /** Time to wait for the client, in ms, instead of the usual one. */
  patienceMs?: number;
};

export type Imports = ReturnType<typeof createImports>;

/** Creates the keeper of uploads. */
export function createImports({ importer, counts, places, maxBytes, toProblem, patienceMs }: ImportsOptions) {
  const stopping = new AbortController();
  const { uploads, refusals } = counts.imports;
  let running = 0;

  /**
   * Imports the file that a request carries.
   * @throws Problem 503 where there is no place, 413 and 408 and what `Importer.run` throws, where nothing was begun
   */
  async function run(request: Request, order: ImportOrder): Promise<ImportOutcome> {
    if (Number(request.get("content-length") ?? 0) > maxBytes) {
      refusals["too-large"] += 1;
      throw new Problem("payload-too-large", `a file may have ${maxBytes} bytes at the most: send it in parts`);
    }
    if (running >= places) {
      refusals.busy += 1;
      throw new Problem("overloaded", `${places} imports are under way in this process: try again later`);
    }
    running += 1;
    const upload = openUpload(request, {
      ...{ maxBytes, stopping: stopping.signal },
      ...(patienceMs === undefined ? {} : { patienceMs }),
    });
    let row: ImportRow | undefined;
    const begun = (entry: ImportRow) => {
      row = entry;
    };
    try {
      const done = await importer.run({ order, upload, begun });
      uploads[done.replayed ? "replayed" : "done"] += 1;
      return { kind: done.replayed ? "replayed" : "finished", row: done.row };
    } catch (error) {
      return breakOff(error, row);
    } finally {
      upload.end();
      running -= 1;
    }
  }

  function breakOff(error: unknown, row: ImportRow | undefined): ImportOutcome {
    if (error instanceof Problem) {
      if (error.code === "payload-too-large") refusals["too-large"] += 1;
      if (error.code === "upload-stalled") refusals.stalled += 1;
      if (error.code === "import-in-use") refusals["in-use"] += 1;
    }
    const problem = describe(error);
    const mayGoOn = problem && CONTINUABLE.has(problem.code);
    uploads[mayGoOn ? "interrupted" : "refused"] += 1;
    if (!mayGoOn || !row) throw problem ?? error;
    const hint = `the import ${row.id} is kept as far as it came, and goes on when the same file is sent again`;
    const how = "with the same Idempotency-Key or with importId";
    return { kind: "broken", id: row.id, problem: new Problem(problem.code, `${problem.message}; ${hint} ${how}`) };
  }

  function describe(error: unknown): Problem | undefined {
    if (error instanceof UploadBroken)
      return error.why === "stopping"
        ? new Problem("unavailable", "the service is stopping")
        : new Problem("upload-stalled", "the connection ended before the file did");
    return error instanceof Problem ? error : toProblem(error);
  }

  return {
    run,
    /** Has every upload end with its batch. Nothing is waited for: their requests end by themselves. */
    stop: () => stopping.abort(),
    stats: () => ({ running }),
  };
}

const CONTINUABLE: ReadonlySet<string> = new Set(["unavailable", "overloaded", "upload-stalled", "payload-too-large"]);
