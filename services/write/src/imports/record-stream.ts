import type { FileRecord, RecordReader } from "./records.ts";
import type { Upload } from "./upload.ts";

export type RecordStream = ReturnType<typeof createRecordStream>;

/**
 * Creates the sequence of an upload's records.
 * @param held bytes that were read already, before what `upload` has
 */
export function createRecordStream(upload: Pick<Upload, "next">, reader: RecordReader, held: Buffer) {
  let current: Generator<FileRecord> | null = held.length > 0 ? reader.read(held) : null;
  let ended = false;

  /** The next records, `most` at the most, as soon as there are any; null behind the last one. Rejects as the upload does. */
  async function next(most: number): Promise<FileRecord[] | null> {
    for (;;) {
      if (!current) {
        if (ended) return null;
        const piece = await upload.next();
        ended = piece === null;
        current = reader.read(piece);
      }
      const records: FileRecord[] = [];
      while (current && records.length < most) {
        const { value, done } = current.next();
        if (done) current = null;
        else records.push(value);
      }
      if (records.length > 0) return records;
    }
  }

  return { next, position: reader.position };
}
