// Bounded buffer between the redirects and the sender, as columns rather than objects: a click costs the request a few
// stores into arrays that are there already, and nothing that the garbage collector has to carry along.
import { USER_AGENT_MAX } from "@linkfence/contracts";
import type { ClickFacts } from "../domain/click.ts";
import type { Entry } from "../domain/entry.ts";
import type { VisitorFields } from "../domain/visitor.ts";

/** A referrer is needed for its host alone; a longer one is cut, which leaves any host whole. */
const REFERRER_MAX = 1024;
/** The longest address has 45 characters, and a country two. */
const ORIGIN_MAX = 64;

export type ClickRing = ReturnType<typeof createClickRing>;

/** Creates a ring that holds `capacity` clicks. When it is full, new clicks are dropped and counted. */
export function createClickRing(capacity: number) {
  const entries = new Array<Entry | undefined>(capacity).fill(undefined);
  const times = new Float64Array(capacity);
  const referrers = new Array<string | undefined>(capacity).fill(undefined);
  const userAgents = new Array<string | undefined>(capacity).fill(undefined);
  const origins = new Array<string | undefined>(capacity).fill(undefined);
  const prefetches = new Uint8Array(capacity);
  let first = 0;
  let size = 0;
  let accepted = 0;
  let droppedFull = 0;

  return {
    /**
     * Keeps one click; never waits, never throws.
     * @param wall the request's time in ms since 1970
     * @param origin a country or an address, where one of them is wanted
     */
    push(entry: Entry, wall: number, { referrer, userAgent, prefetch }: VisitorFields, origin?: string): void {
      accepted += 1;
      if (size === capacity) {
        droppedFull += 1;
        return;
      }
      const slot = first + size < capacity ? first + size : first + size - capacity;
      entries[slot] = entry;
      times[slot] = wall;
      // A slot that was taken out holds none of them.
      if (referrer !== undefined) referrers[slot] = bounded(referrer, REFERRER_MAX);
      if (userAgent !== undefined) userAgents[slot] = bounded(userAgent, USER_AGENT_MAX);
      if (origin !== undefined) origins[slot] = bounded(origin, ORIGIN_MAX);
      prefetches[slot] = prefetch ? 1 : 0;
      size += 1;
    },
    /** Takes out up to `limit` clicks, oldest first. */
    take(limit: number): ClickFacts[] {
      const count = Math.min(limit, size);
      const facts: ClickFacts[] = [];
      for (let index = 0; index < count; index += 1) {
        const { code, version, owner } = entries[first] as Entry;
        const at = times[first] as number;
        const prefetch = prefetches[first] === 1;
        const referrer = referrers[first];
        const userAgent = userAgents[first];
        const origin = origins[first];
        facts.push({ code, version, at, referrer, userAgent, owner, prefetch, origin });
        entries[first] = undefined;
        if (referrer !== undefined) referrers[first] = undefined;
        if (userAgent !== undefined) userAgents[first] = undefined;
        if (origin !== undefined) origins[first] = undefined;
        first += 1;
        if (first === capacity) first = 0;
      }
      size -= count;
      // An empty ring begins anew: its first slots are in the processor's caches, and those ahead of it are in none.
      if (size === 0) first = 0;
      return facts;
    },
    stats: () => ({ accepted, droppedFull, waiting: size }),
  };
}

/** A slice keeps the whole text alive; copying through bytes does not. Header texts are latin-1 (RFC 9110 section 5.5). */
function bounded(text: string, max: number): string {
  if (text.length <= max) return text;
  return Buffer.from(text.slice(0, max), "latin1").toString("latin1");
}
