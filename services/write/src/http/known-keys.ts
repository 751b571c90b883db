import { LRUCache } from "lru-cache";
import { matchesSecret } from "../store/key-secret.ts";

/** About 200 bytes each. The one beyond is as good as new, which matters only at an address that is at its limit. */
const MAX_KEYS = 10_000;

/**
 * Remembers by its digest which keys were valid when they were last seen. That lets a key be looked up where others are
 * not any more, and never in.
 */
export function createKnownKeys(maxKeys = MAX_KEYS) {
  const digests = new LRUCache<string, Uint8Array>({ max: maxKeys });
  return {
    note: (id: string, secretHash: Uint8Array): void => void digests.set(id, secretHash),
    forget: (id: string): void => void digests.delete(id),
    has: ({ id, secret }: { id: string; secret: string }): boolean => matchesSecret(secret, digests.get(id)),
    size: () => digests.size,
  };
}
