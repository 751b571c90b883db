// What the server sends, as it goes into the file: lines are counted, and those of CSV end as RFC 4180 says.
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;

/** Creates the counter of lines. A line break within quotes is part of a cell: it ends no line, and stays as it is. */
export function createLineEnds({ quotes }: { quotes: boolean }) {
  let quoted = false;
  let lines = 0;

  /** Where lines end in this chunk, in order. */
  function ends(chunk: Buffer): number[] {
    const found: number[] = [];
    for (let place = 0; place < chunk.length; place += 1) {
      const byte = chunk[place];
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === LF && !quoted) found.push(place);
    }
    return found;
  }

  /** The chunk with a CR before each LF that ends a line. */
  function lengthen(chunk: Buffer): Buffer {
    const places = ends(chunk);
    lines += places.length;
    const longer = Buffer.allocUnsafe(chunk.length + places.length);
    let read = 0;
    let written = 0;
    for (const place of places) {
      written += chunk.copy(longer, written, read, place);
      longer[written] = CR;
      longer[written + 1] = LF;
      written += 2;
      read = place + 1;
    }
    chunk.copy(longer, written, read);
    return longer;
  }

  function count(chunk: Buffer): Buffer {
    for (let place = chunk.indexOf(LF); place >= 0; place = chunk.indexOf(LF, place + 1)) lines += 1;
    return chunk;
  }

  return {
    /** Takes what comes next. */
    take: quotes ? lengthen : count,
    /** Lines that have ended. */
    lines: () => lines,
  };
}
