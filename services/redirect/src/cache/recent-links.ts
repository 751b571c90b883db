// The known links in the order of their last use. Its entries are the links of the chain themselves, and it takes no room
// before there is something to keep. The codes are spread over many small maps: a map that grows, or that has been through
// many deletions, is built anew as a whole, which for a million codes would stop all requests for a tenth of a second.
import type { Entry } from "../domain/entry.ts";

/** A power of two. Of a million codes each map has four thousand, and is built anew in about a millisecond. */
const PARTS = 256;
/** What an entry occupies beside its texts: object, place in a map, moment (measured: 185 to 255 bytes, as moments are shared). */
const ENTRY_OVERHEAD_BYTES = 260;

/** By the last three characters: of a code that was drawn they are as random as the others. */
function partOf(code: string): number {
  const end = code.length - 1;
  return (code.charCodeAt(end) + 31 * code.charCodeAt(end - 1) + 961 * code.charCodeAt(end - 2)) & (PARTS - 1);
}

const sizeOf = ({ code, target }: Entry) => ENTRY_OVERHEAD_BYTES + code.length + target.length;

/** Creates it. When it is full, what was asked for longest ago goes: one entry for each that comes, a few for a long one. */
export function createRecentLinks(maxEntries: number, maxBytes: number) {
  let parts: Map<string, Entry>[] = [];
  let newest: Entry | null = null;
  let oldest: Entry | null = null;
  let entries = 0;
  let bytes = 0;
  let evicted = 0;

  function clear(): void {
    parts = Array.from({ length: PARTS }, () => new Map());
    newest = null;
    oldest = null;
    entries = 0;
    bytes = 0;
  }

  function mapOf(code: string): Map<string, Entry> {
    return parts[partOf(code)] as Map<string, Entry>;
  }

  function unlink(entry: Entry): void {
    const { newer, older } = entry;
    if (newer) newer.older = older;
    else newest = older;
    if (older) older.newer = newer;
    else oldest = newer;
    // Whoever still holds it does not hold its neighbours.
    entry.newer = null;
    entry.older = null;
  }

  function linkFirst(entry: Entry): void {
    entry.older = newest;
    if (newest) newest.newer = entry;
    else oldest = entry;
    newest = entry;
  }

  function remove(entry: Entry): void {
    mapOf(entry.code).delete(entry.code);
    unlink(entry);
    entries -= 1;
    bytes -= sizeOf(entry);
  }

  clear();

  return {
    get(code: string): Entry | undefined {
      const entry = mapOf(code).get(code);
      if (entry !== undefined && entry !== newest) {
        unlink(entry);
        linkFirst(entry);
      }
      return entry;
    },
    /** Keeps an entry in the place of the one of its code. */
    set(entry: Entry): void {
      const map = mapOf(entry.code);
      const before = map.get(entry.code);
      if (before) remove(before);
      map.set(entry.code, entry);
      linkFirst(entry);
      entries += 1;
      bytes += sizeOf(entry);
      while (oldest && (entries > maxEntries || bytes > maxBytes)) {
        remove(oldest);
        evicted += 1;
      }
    },
    delete(code: string): void {
      const entry = mapOf(code).get(code);
      if (entry) remove(entry);
    },
    clear,
    stats: () => ({ entries, bytes, evicted }),
  };
}
