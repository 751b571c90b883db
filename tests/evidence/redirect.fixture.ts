// The redirect service's parts as a process of their own, with the fence that FENCE names: the real one ("clock"), or
// one that a timer keeps, which has not fired yet in a process that was stopped.
import type { LinkLookup } from "../../services/redirect/src/cache/link-lookup.ts";
import type { Moment } from "../../services/redirect/src/domain/entry.ts";
import { startRedirectInProcess, type Weakening } from "./redirect-in-process.ts";

const { DATABASE_URL: url = "", CACHE_TTL_MS, FENCE = "clock" } = process.env;
const ttlMs = Number(CACHE_TTL_MS);
const NEVER: Moment = { mono: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY };

/** True from each read of the log on, until a timer says that a TTL is over. */
function createFlag() {
  let timer: NodeJS.Timeout | undefined;
  let up = false;
  return {
    raise(): void {
      up = true;
      clearTimeout(timer);
      timer = setTimeout(() => {
        up = false;
      }, ttlMs);
    },
    isUp: () => up,
  };
}

/** Whatever is in memory may be given while the flag is up. */
function timedMemory(real: LinkLookup): LinkLookup {
  const flag = createFlag();
  let syncedAt: Moment = NEVER;
  return {
    ...real,
    // As of the last read of the log everything is young.
    find: (code) => (flag.isUp() ? real.find(code, syncedAt.mono, syncedAt.wall) : undefined),
    synced(moment) {
      real.synced(moment);
      syncedAt = moment;
      flag.raise();
    },
  };
}

/** Entries age by the clocks; the flag alone says whether the log was read. */
function timedLog(real: LinkLookup): LinkLookup {
  const flag = createFlag();
  return {
    ...real,
    find: (code, mono, wall) => (flag.isUp() ? real.find(code, mono, wall) : undefined),
    synced() {
      real.synced(NEVER);
      flag.raise();
    },
  };
}

const FENCES: Record<string, Weakening> = {
  clock: {},
  "timed-memory": { lookup: timedMemory },
  "timed-log": { lookup: timedLog },
};

const weakening = FENCES[FENCE];
if (!weakening) throw new Error(`FENCE must be one of ${Object.keys(FENCES).join(", ")}`);
const redirect = await startRedirectInProcess({ url, ttlMs, weakening });
process.once("SIGTERM", () => void redirect.close().then(() => process.exit()));
process.stdout.write(`${JSON.stringify({ level: "info", message: "listening", port: redirect.port })}\n`);
