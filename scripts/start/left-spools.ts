// Where fewer redirect processes are started than before, what the last ones left waits for processes of their names.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { HEADER_BLOCK } from "../../services/redirect/src/spool/account.ts";
import { segmentNumber } from "../../services/redirect/src/spool/segment.ts";

/**
 * Says in a line for each of the directories in `folder` that clicks wait there, where nobody uses it now. Files are looked at by
 * their names and sizes alone. Rejects with the system's error.
 * @param used paths of the directories in use
 */
export async function tellOfLeftSpools(folder: string, used: readonly string[]): Promise<string[]> {
  const directories = (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name))
    .filter((path) => !used.includes(path));
  const bytes = await Promise.all(directories.map(countBytes));
  return directories.flatMap((path, index) =>
    bytes[index] === 0
      ? []
      : [`clicks (${bytes[index]} bytes) wait in ${path} for a redirect process of that name: see LINKFENCE_REDIRECTS`],
  );
}

async function countBytes(directory: string): Promise<number> {
  const segments = (await readdir(directory)).filter((name) => !Number.isNaN(segmentNumber(name)));
  const sizes = await Promise.all(
    segments.map(async (name) => (await stat(join(directory, name))).size - HEADER_BLOCK),
  );
  return sizes.reduce((sum, size) => sum + Math.max(0, size), 0);
}
