// Files that are no job's: of workers that died or were too late, and of jobs that are no longer kept.
import type { ExportWork } from "../store/export-work.ts";
import type { ExportFiles } from "./export-files.ts";

/** Asked about in one statement. */
const NAMES_AT_ONCE = 1000;

/** Creates what tidies the directory up. Rejects with the error of the disk or the database, and has then done a part. */
export function createLeftovers(
  files: Pick<ExportFiles, "list" | "remove">,
  work: Pick<ExportWork, "named" | "removeOld">,
) {
  const counts = { filesRemoved: 0, jobsRemoved: 0 };

  return {
    /**
     * Removes jobs that are kept no longer, and then every file that no job names. First it looks what there is, and
     * then whose it is: a job names its file before that is made, so that nothing that is being written seems nobody's.
     */
    async tidy(): Promise<void> {
      counts.jobsRemoved += await work.removeOld();
      const names = await files.list();
      for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
        const some = names.slice(at, at + NAMES_AT_ONCE);
        const named = await work.named(some);
        for (const name of some) {
          if (named.has(name)) continue;
          await files.remove(name);
          counts.filesRemoved += 1;
        }
      }
    },
    stats: () => ({ ...counts }),
  };
}
