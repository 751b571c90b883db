// Reports of dropped clicks on their way into the database. They come with every batch and seldom say anything new: one
// that says what the last one said is not stored, but for once an hour, so that it is known for each drop when the process
// had not dropped it yet. One that cannot be stored is not kept: the next batch brings its counters again.
import type { DropReport } from "@linkfence/contracts";
import type { Logger } from "@linkfence/service-shell";
import { LRUCache } from "lru-cache";
import type { DropStore } from "../store/drops.ts";

export type DropReportsOptions = {
  note: DropStore["note"];
  logger: Logger;
  /** ms since 1970. */
  now: () => number;
};
export type DropReports = ReturnType<typeof createDropReports>;

/** Redirect processes whose last report is remembered: more than there are. One that is forgotten is stored once more. */
const REMEMBERED = 1000;
/** Reports being stored at a time, one of each process at the most. */
const UNDER_WAY_MAX = 8;
const HOUR_MS = 3_600_000;

/** Creates the way in. */
export function createDropReports({ note, logger, now }: DropReportsOptions) {
  const stored = new LRUCache<string, string>({ max: REMEMBERED });
  const underWay = new Set<string>();
  const counts = { stored: 0, failed: 0 };

  return {
    /** Takes a report, and stores it where it is news. Returns at once, and never throws. */
    take(report: DropReport): void {
      const { incarnation } = report;
      const said = JSON.stringify([Math.floor(now() / HOUR_MS), report.totals]);
      if (stored.get(incarnation) === said || underWay.has(incarnation) || underWay.size >= UNDER_WAY_MAX) return;
      underWay.add(incarnation);
      note(report)
        .then(() => {
          stored.set(incarnation, said);
          counts.stored += 1;
        })
        .catch((error: unknown) => {
          counts.failed += 1;
          logger.warn("a report of dropped clicks could not be stored; the next one has its counters", { error });
        })
        .finally(() => underWay.delete(incarnation));
    },
    /** Stores a report at once, whatever is known of its sender. Rejects with the database's error. */
    async store(report: DropReport): Promise<void> {
      try {
        await note(report);
        counts.stored += 1;
      } catch (error) {
        counts.failed += 1;
        throw error;
      }
    },
    stats: () => ({ ...counts }),
  };
}
