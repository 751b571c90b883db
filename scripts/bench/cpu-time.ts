import { readFile } from "node:fs/promises";
import { createProcessTable } from "@linkfence/local-postgres";

/** Linux counts time in hundredths of a second for whoever asks (proc(5), sysconf(_SC_CLK_TCK)). */
const TICK_MS = 10;

/** A server's processes, its former ones included, and their use of processors in ms; NaN where the system does not tell. */
export async function cpuOfServer(pid: number | undefined): Promise<number> {
  if (pid === undefined) return Number.NaN;
  const processes = await createProcessTable().list();
  const children = processes.filter(({ parentPid }) => parentPid === pid);
  const used = await Promise.all(children.map((child) => cpuOf(child.pid)));
  return used.reduce((sum, ms) => sum + ms, await cpuOf(pid, true));
}

/**
 * A process's use of processors in ms, and that of its former children where they count.
 * @param pid its number, or `<pid>/task/<tid>` for one of its threads
 */
export async function cpuOf(pid: number | string, andChildren = false): Promise<number> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (status === null) return andChildren ? Number.NaN : 0;
  // "pid (name) state ppid ...": the name may itself hold blanks. User and system time are the fields 14 and 15.
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return TICK_MS * fields.slice(11, andChildren ? 15 : 13).reduce((sum, ticks) => sum + Number(ticks), 0);
}
