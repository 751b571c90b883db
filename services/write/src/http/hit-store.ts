// How many hits each client of a rate limit has in its window. Bounded: of too many clients, those go first that were
// quiet for longest. Windows end by a clock that nobody can set; no timer has a part in it.
import type { ClientRateLimitInfo, Store } from "express-rate-limit";
import { LRUCache } from "lru-cache";

export type HitStoreOptions = {
  windowMs: number;
  /** Clients remembered at the most. */
  maxClients: number;
  /** ms of a clock that only goes forward. */
  now: () => number;
};

/** Creates a store for `express-rate-limit`. A client's window begins with its first hit and never grows. */
export function createHitStore({ windowMs, maxClients, now }: HitStoreOptions) {
  let evicted = 0;
  const clients = new LRUCache<string, { hits: number }>({
    max: maxClients,
    ttl: windowMs,
    // Asked at every look; by default a timer would keep the clock's last answer for a while.
    ttlResolution: 0,
    perf: { now },
    dispose: (_client, _key, reason) => {
      if (reason === "evict") evicted += 1;
    },
  });

  function info(key: string, hits: number): ClientRateLimitInfo {
    // Wall time, since the library takes its own reading off it at once: what is left of the window remains.
    return { totalHits: hits, resetTime: new Date(Date.now() + clients.getRemainingTTL(key)) };
  }

  const store: Store = {
    localKeys: true,
    get(key) {
      const client = clients.get(key);
      return client && info(key, client.hits);
    },
    increment(key) {
      let client = clients.get(key);
      if (!client) {
        client = { hits: 0 };
        clients.set(key, client);
      }
      client.hits += 1;
      return info(key, client.hits);
    },
    decrement(key) {
      const client = clients.get(key);
      if (client && client.hits > 0) client.hits -= 1;
    },
    resetKey: (key) => void clients.delete(key),
  };

  return {
    ...store,
    /** Hits of a client in its window. */
    hits: (key: string) => clients.get(key)?.hits ?? 0,
    stats() {
      clients.purgeStale();
      return { clients: clients.size, evicted };
    },
  };
}
