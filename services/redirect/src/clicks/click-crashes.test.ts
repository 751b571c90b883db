// Lives of processes one after the other on one disk, each ended by a kill.
import { afterEach, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createDisk } from "../spool/disk.fixture.ts";
import { AWAY, createIngest, gap, startPath, stopPaths } from "./click-path.fixture.ts";

afterEach(stopPaths);

test("of any disk and any ingest: kill after kill, nothing is counted twice, and what is missing is within the bound", async () => {
  const fault = fc.constantFrom("EIO", "ENOSPC", "short", undefined, undefined, undefined);
  const life = fc.record({
    clicks: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 5 }),
    faults: fc.array(fault, { minLength: 1, maxLength: 9 }),
    away: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      let disk = createDisk();
      const ingest = createIngest();
      const accepted = { count: 0, dropped: 0 };
      for (const { clicks, faults, away } of lives) {
        let calls = 0;
        let alive = true;
        // The bound holds while the account can be written.
        disk.breakBy((which, name) =>
          /write|^sync$/.test(which) && name !== "account" ? faults[calls++ % faults.length] : undefined,
        );
        const { path, click, drained } = await startPath({
          ...{ disk, capacity: 30 },
          answer: (batch, attempt) => (!alive || (away && attempt % 2 === 1) ? AWAY : ingest.store(batch)),
        });
        for (const count of clicks) {
          click(count);
          expect(gap(path)).toBe(0);
          if (count % 2 === 0) await drained();
        }
        const { dropped } = path.ledger();
        accepted.count += path.ledger().accepted;
        accepted.dropped += dropped["ring-full"] + dropped["spool-full"];
        // The kill: the next process has the disk as it is now, and this one can do it no more harm.
        alive = false;
        disk = disk.copy();
      }
      const { path, spool, settled } = await startPath({ disk, answer: ingest.store });
      await settled();
      expect(gap(path)).toBe(0);
      const missing = accepted.count - accepted.dropped - ingest.rows.size;
      expect(missing).toBeLessThanOrEqual((spool?.earlier.lost ?? 0) + path.ledger().dropped.damaged);
      await stopPaths();
    }),
    { numRuns: 25 },
  );
});
