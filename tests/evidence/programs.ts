// Programs that some experiments need beside Node.js and the packages, where Debian puts them.
import { access, constants } from "node:fs/promises";

/** By the name of the Debian package. */
const PATHS = { chromium: "/usr/bin/chromium", nginx: "/usr/sbin/nginx" };

export type Program = keyof typeof PATHS;

export const programPath = (program: Program): string => PATHS[program];

/** What has to be installed before these can be run, as a command; null when all are there. */
export async function missingPrograms(...programs: readonly Program[]): Promise<string | null> {
  const present = await Promise.all(programs.map(isThere));
  const missing = programs.filter((_, index) => !present[index]);
  return missing.length === 0 ? null : `apt-get install ${missing.join(" ")}`;
}

async function isThere(program: Program): Promise<boolean> {
  return access(PATHS[program], constants.X_OK).then(
    () => true,
    () => false,
  );
}
