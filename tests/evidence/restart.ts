import { createTestDatabase } from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type RedirectProcess, startRedirect } from "./redirect-process.ts";
import type { EvidenceCase } from "./report.ts";

const LINKS = 20;

const statusesOf = ({ status }: RedirectProcess, codes: readonly string[]) => Promise.all(codes.map(status));

export const r10: EvidenceCase = {
  id: "R10",
  shows:
    "a process that is started again remembers nothing, starts at the head of the log, and obeys every revocation at once",
  async run(report) {
    await closingAfterwards(async (later) => {
      const database = await createTestDatabase("main");
      later(database.drop);
      const first = await startRedirect(database.url, {});
      later(first.stop);
      const [kept, before, meanwhile] = [
        await insertLinks(database.sql, "kept", LINKS),
        await insertLinks(database.sql, "before", LINKS),
        await insertLinks(database.sql, "meanwhile", LINKS),
      ];
      const codes = [...kept, ...before, ...meanwhile];
      report.check("first answers of the first process", [...new Set(await statusesOf(first, codes))], [302]);
      await revokeLinks(database.sql, ...before);
      await first.stop();
      const seqs = await revokeLinks(database.sql, ...meanwhile);

      const second = await startRedirect(database.url, {});
      later(second.stop);
      report.check("links in memory after the restart", await second.metric("linkfence_cache_entries"), 0);
      report.check("changes applied since", await second.metric("linkfence_changes_applied_total"), 0);
      report.check("position in the log", await second.metric("linkfence_applied_seq"), Math.max(...seqs));
      report.check(
        "first answers for the revoked links",
        [...new Set(await statusesOf(second, [...before, ...meanwhile]))],
        [410],
      );
      report.check("first answers for the others", [...new Set(await statusesOf(second, kept))], [302]);
    });
  },
};
