// How often one key may call, and how often one address may fail to show a key. Each is a window of a minute that begins
// with the first hit, in the memory of this process. The answers say how much is left, by the header fields of the
// IETF's draft "RateLimit header fields for HTTP", in the form that it has had since its eighth version.
import { Problem } from "@linkfence/contracts";
import type { Request, Response } from "express";
import { ipKeyGenerator, rateLimit } from "express-rate-limit";
import type { Counts } from "../counts.ts";
import { clientAddress } from "./client-address.ts";
import { createHitStore } from "./hit-store.ts";
import { createKnownKeys } from "./known-keys.ts";

const WINDOW_MS = 60_000;
/** Keys with a call within the last minute; they exist all, since a call counts when its key was found. About 2 MB. */
const MAX_KEYS = 10_000;
/** Addresses with a failure within the last minute; whoever has more of them has more than any limit could hold. About 10 MB. */
const MAX_ADDRESSES = 50_000;
/** So long after one unknown key was looked up for an address at its limit, the next may be: ten a second, of all addresses. */
const TRY_EVERY_MS = 100;
/** What one customer is usually given at the least, and can choose addresses of at will (RFC 6177 section 2). */
const IPV6_SUBNET = 64;

export type RateLimits = ReturnType<typeof createRateLimits>;

export type RateLimitsOptions = {
  /** Calls of one key a minute; 0 means no limit. */
  keyPerMinute: number;
  /** Calls of one address a minute that show no valid key; 0 means no limit. */
  addressPerMinute: number;
  counts: Counts["rateLimited"];
  /** ms of a clock that only goes forward. */
  now: () => number;
};

const firstRefusals = new WeakSet<Request>();

/** Says whether a request was the first to be refused by a limit in its client's window; of the others none is special. */
export function isFirstRefusal(request: Request): boolean {
  return firstRefusals.has(request);
}

/** Creates both limits, and the memory of keys beside them. They have no timers, and nothing to stop. */
export function createRateLimits({ keyPerMinute, addressPerMinute, counts, now }: RateLimitsOptions) {
  let nextTryAt = Number.NEGATIVE_INFINITY;
  return {
    known: createKnownKeys(),
    /** Takes the right to look up one key more, where that is due. */
    mayTry(): boolean {
      if (now() < nextTryAt) return false;
      nextTryAt = now() + TRY_EVERY_MS;
      return true;
    },
    key: createRateLimit({
      name: "key",
      limit: keyPerMinute,
      maxClients: MAX_KEYS,
      now,
      onRefused: () => {
        counts.key += 1;
      },
      detail: "this key has made too many calls: go on when Retry-After has passed",
    }),
    address: createRateLimit({
      name: "address",
      limit: addressPerMinute,
      maxClients: MAX_ADDRESSES,
      now,
      onRefused: () => {
        counts.address += 1;
      },
      detail: "too many calls without a valid key came from this address: go on when Retry-After has passed",
    }),
  };
}

/** What the limit of an address goes by: an IPv4 address, also where it is written as IPv6, or a network of IPv6. */
export function networkOf(request: Request): string {
  return ipKeyGenerator(clientAddress(request), IPV6_SUBNET);
}

type RateLimitOptions = {
  /** Names the policy in the answers. */
  name: string;
  limit: number;
  maxClients: number;
  now: () => number;
  onRefused: () => void;
  detail: string;
};

function createRateLimit({ name, limit, maxClients, now, onRefused, detail }: RateLimitOptions) {
  const store = createHitStore({ windowMs: WINDOW_MS, maxClients, now });
  const clients = new WeakMap<Request, string>();
  const limiter = rateLimit({
    windowMs: WINDOW_MS,
    limit,
    store,
    identifier: name,
    standardHeaders: "draft-8",
    legacyHeaders: false,
    keyGenerator: (request) => clients.get(request) ?? "unknown",
    handler: (request, _response, next) => {
      onRefused();
      if (store.hits(clients.get(request) ?? "") === limit + 1) firstRefusals.add(request);
      next(new Problem("rate-limited", detail));
    },
    // It would print to the console what it thinks of this configuration.
    validate: false,
  });

  return {
    /** Counts a hit of `client` and tells it in the answer's header fields. Rejects with a Problem beyond the limit. */
    async hit(request: Request, response: Response, client: string): Promise<void> {
      if (limit === 0) return;
      clients.set(request, client);
      await new Promise<void>((resolve, reject) => {
        void limiter(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
      });
    },
    /** Says whether the next hit of `client` will be refused. */
    isSpent: (client: string): boolean => limit > 0 && store.hits(client) >= limit,
    stats: store.stats,
  };
}
