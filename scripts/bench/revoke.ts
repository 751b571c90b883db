// A thousand links in one call of revoke_links, of an owner with a tenth of all links: how long the lock of all
// revocations is held. And revocations over HTTP, until they are in force everywhere, and until a visitor is told.
import type postgres from "postgres";
import type { Subject } from "./bench-subject.ts";
import { measureConfirmation } from "./confirmation.ts";
import { measureNewAnswers } from "./new-answer.ts";
import { median } from "./numbers.ts";
import { withSql } from "./own-server.ts";
import { addOwnerKey } from "./owner-key.ts";
import { BIG_OWNER, openSeeded } from "./seed.ts";

const BATCH = 1000;
const ROUNDS = 15;

/** Random ones of the owner's active links, in no order. */
async function drawCodes(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ code: string }[]>`
    SELECT code FROM link WHERE owner = ${BIG_OWNER} AND state = 'ACTIVE' ORDER BY random() LIMIT ${BATCH * ROUNDS}`;
  return rows.map(({ code }) => code);
}

export const revoke: Subject = {
  shows: "how long the revocation of a thousand links takes in the database, and until one is in force everywhere",
  links: 1_000_000,
  async run(bench) {
    const { server, size, results, tell } = bench;
    const url = await openSeeded(server, size, tell);
    results.noteLoad("before");
    await withSql(url, 1, async (sql) => {
      const codes = await drawCodes(sql);
      const rounds = Math.floor(codes.length / BATCH);
      const times = { first: [] as number[], again: [] as number[] };
      for (let round = 0; round < rounds; round += 1) {
        const batch = codes.slice(round * BATCH, (round + 1) * BATCH);
        for (const which of ["first", "again"] as const) {
          const startedAt = performance.now();
          await sql`SELECT * FROM revoke_links(${batch}::text[], ${BIG_OWNER}, 'bench') ORDER BY ordinal`;
          times[which].push(performance.now() - startedAt);
        }
      }
      results.figure("rounds", times.first.length);
      results.figure("median for 1,000 links", median(times.first), "ms");
      results.atMost("longest for 1,000 links, in ms", Math.max(...times.first), 2000);
      results.figure("median for 1,000 that are revoked already", median(times.again), "ms");
    });
    await measureConfirmation(bench, url, await addOwnerKey(url, BIG_OWNER));
    await measureNewAnswers(bench);
    results.noteLoad("after");
  },
};
