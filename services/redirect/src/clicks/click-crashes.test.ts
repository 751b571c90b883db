// Lives of processes one after the other on one disk, each ended by a kill or a stop.
import { afterEach, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createDisk } from "../spool/disk.fixture.ts";
import { DROP_REASONS } from "../spool/drops.ts";
import { AWAY, createIngest, gap, startPath, stopPaths } from "./click-path.fixture.ts";

afterEach(stopPaths);

test("of any disk and any ingest: nothing is counted twice, nor both counted and told as dropped, and what is missing is within the bound", async () => {
  const fault = fc.constantFrom("EIO", "ENOSPC", "short", "short", undefined, undefined, undefined);
  const life = fc.record({
    clicks: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 5 }),
    faults: fc.array(fault, { minLength: 1, maxLength: 9 }),
    away: fc.constantFrom("never", "at first", "always"),
    stops: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      let disk = createDisk();
      const ingest = createIngest();
      let accepted = 0;
      for (const { clicks, faults, away, stops } of lives) {
        let calls = 0;
        let alive = true;
        // The bound holds while the account can be written.
        disk.breakBy((which, name) =>
          /write|^sync$/.test(which) && name !== "account" ? faults[calls++ % faults.length] : undefined,
        );
        const { path, click, drained } = await startPath({
          ...{ disk, capacity: 30 },
          answer: (batch, attempt) =>
            !alive || away === "always" || (away === "at first" && attempt % 2 === 1) ? AWAY : ingest.store(batch),
        });
        for (const count of clicks) {
          click(count);
          expect(gap(path)).toBe(0);
          if (count % 2 === 0) await drained();
        }
        if (stops) await path.stop(0);
        expect(gap(path)).toBe(0);
        accepted += path.ledger().accepted;
        // Killed where it was not stopped: the next process has the disk as it is now, and this one can do it no more harm.
        alive = false;
        disk = disk.copy();
      }
      const { path, settled } = await startPath({ disk, answer: ingest.store });
      await settled();
      await path.stop(1000);
      expect(gap(path)).toBe(0);
      const told = new Map(path.dropReport().totals.map(({ reason, total }) => [reason, total]));
      const dropped = DROP_REASONS.reduce((sum, reason) => sum + (told.get(reason) ?? 0), 0);
      const missing = accepted - dropped - ingest.rows.size;
      expect(missing).toBeGreaterThanOrEqual(0);
      expect(missing).toBeLessThanOrEqual(told.get("killed") ?? 0);
      await stopPaths();
    }),
    { numRuns: 25 },
  );
});
