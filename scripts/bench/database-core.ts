import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { createProcessTable } from "@linkfence/local-postgres";

/** Setting an affinity is one system call for each thread. */
const TASKSET_MS = 5000;

/**
 * Gives the database a core of its own, and the others to this process and whatever else it has started: the kernel moves
 * processes about otherwise, and a ratio then tells who was moved. What these start later stays where they are.
 * @param database number of the server's main process
 * @param others the services'
 * @returns whether it could be done: it takes Linux, two cores and taskset (Debian: util-linux)
 */
export async function partCores(database: number | undefined, others: readonly number[]): Promise<boolean> {
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const cores = readList(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "");
  const [first, ...rest] = cores;
  if (database === undefined || first === undefined || rest.length === 0) return false;
  try {
    const processes = await createProcessTable().list();
    const servers = processes.filter(({ pid, parentPid }) => pid === database || parentPid === database);
    for (const { pid } of servers) await pin(pid, `${first}`);
    for (const pid of [process.pid, ...others]) await pin(pid, rest.join(","));
    return true;
  } catch {
    return false;
  }
}

/** Numbers in a list of the kernel's, such as `0-2,5`. */
function readList(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [first = Number.NaN, last = first] = part.split("-").map(Number);
    return part === "" ? [] : Array.from({ length: last - first + 1 }, (_, n) => first + n);
  });
}

async function pin(pid: number, cores: string): Promise<void> {
  await promisify(execFile)("taskset", ["-a", "-c", "-p", cores, `${pid}`], { timeout: TASKSET_MS });
}
