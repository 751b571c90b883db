// A file that was sent before is recognized by its bytes: as many of them as the import has decided must have the digest
// that was written down with them.
import { createHash, type Hash } from "node:crypto";
import { Problem } from "@linkfence/contracts";
import type { ImportRow } from "../store/import-rows.ts";
import type { Upload } from "./upload.ts";

type Known = Pick<ImportRow, "bytes" | "digest">;

/** Reads what was decided before. Resolves with its digest and what came behind it in the last piece; throws a Problem 422. */
export async function readKnown(upload: Pick<Upload, "next">, row: Known): Promise<{ hash: Hash; held: Buffer }> {
  const hash = createHash("sha256");
  let missing = row.bytes;
  let held: Buffer = Buffer.alloc(0);
  while (missing > 0) {
    const piece = await upload.next();
    if (piece === null) throw contentDiffers("ends before the lines that were imported from it");
    hash.update(piece.subarray(0, missing));
    held = piece.subarray(missing);
    missing -= Math.min(missing, piece.length);
  }
  if (!hash.copy().digest().equals(row.digest)) throw contentDiffers("has other lines than those that were imported");
  return { hash, held };
}

/** Reads a file whose import is finished, to its end. Throws a Problem 422 where it is another one. */
export async function readFinished(upload: Pick<Upload, "next">, row: Known): Promise<void> {
  const { held } = await readKnown(upload, row);
  if (held.length > 0 || (await upload.next()) !== null)
    throw contentDiffers("goes on behind the lines that were imported");
}

export function contentDiffers(detail: string, rule = "content"): Problem {
  const message = `the file ${detail}: send the same file in the same way, or begin a new import`;
  return new Problem("import-content-differs", message, [{ field: "body", rule, detail }]);
}
