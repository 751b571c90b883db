// Where fewer redirect processes are started than before, what the last ones left waits for processes of their names.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** As the redirect's README describes them: a header, then clicks. */
const SEGMENT = { name: /^clicks-\d{12,15}\.spool$/, headerBytes: 512 };
/** What the workers of a redirect have below its own. */
const PLACE = /^worker-\d+$/;
/** Names that this command gives: what else is in the folder, which anybody may choose, is not its own. */
const OWN_NAME = /^redirect(-\d+)?$/;

/**
 * Says in a line for each of this command's directories in `folder` that clicks wait there, where no process is started on it.
 * Files are looked at by their names and sizes alone. Rejects with the system's error where the folder cannot be read.
 * @param used paths of the directories in use
 */
export async function tellOfLeftSpools(folder: string, used: readonly string[]): Promise<string[]> {
  const paths = (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory() && OWN_NAME.test(entry.name))
    .map(({ name }) => join(folder, name))
    .filter((path) => !used.includes(path));
  return (await Promise.all(paths.map(tellOf))).flat();
}

async function tellOf(path: string): Promise<string[]> {
  try {
    const bytes = await countBytes(path);
    return bytes === 0
      ? []
      : [
          `clicks (${bytes} bytes) wait in ${path}: no process is started for them, see LINKFENCE_REDIRECTS and CLICK_SPOOL`,
        ];
  } catch (error) {
    return [`whether clicks wait in ${path} is not known: ${error instanceof Error ? error.message : String(error)}`];
  }
}

async function countBytes(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory() && PLACE.test(entry.name)).map(({ name }) => name);
  const segments = entries.filter(({ name }) => SEGMENT.name.test(name)).map(({ name }) => name);
  const sizes = await Promise.all([
    ...segments.map(async (name) => (await stat(join(directory, name))).size - SEGMENT.headerBytes),
    ...folders.map((name) => countBytes(join(directory, name))),
  ]);
  return sizes.reduce((sum, size) => sum + Math.max(0, size), 0);
}
