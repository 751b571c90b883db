// Which core does what: the server has one to itself, the load and everything behind the server share the other. The
// kernel moves processes about otherwise, and a ratio then tells who was moved.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { promisify } from "node:util";
import { createProcessTable } from "@linkfence/local-postgres";

const run = promisify(execFile);
/** Gives way to the load on its core, and still gets all that the load leaves. */
const NICE = 19;
/** Setting an affinity is one system call for each thread. */
const TASKSET_MS = 5000;

export type Cores = {
  server: number;
  load: number;
  /** All that there were before this process went to one of them, those two included. */
  all: readonly number[];
};

/** Thrown where a benchmark cannot be run on this machine, which says nothing about the product. */
export class CannotMeasure extends Error {}

/** Dealt out once: after that this process is allowed on one of them alone. */
let taken: Cores | undefined;

/**
 * Puts this process, and with it whatever it starts from now on, on the load's core.
 * @throws CannotMeasure where there are no two cores, or no taskset
 */
export async function takeCores(): Promise<Cores> {
  if (taken) return taken;
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const all = readList(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "");
  const [server, load] = all;
  if (server === undefined || load === undefined)
    throw new CannotMeasure("it takes Linux and two cores, one for the server and one for the load");
  await pin(process.pid, load);
  taken = { server, load, all };
  return taken;
}

/** Numbers in a list of the kernel's, such as `0-2,5`. */
export function readList(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    if (first === undefined || last === undefined || !/^\d+(-\d+)?$/.test(part)) return [];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** Keeps all threads of a process on one core, or on those of a list such as `0,1`. */
export async function pin(pid: number, on: number | string): Promise<void> {
  await run("taskset", ["-a", "-c", "-p", `${on}`, `${pid}`], { timeout: TASKSET_MS }).catch((cause: unknown) => {
    throw new CannotMeasure("taskset cannot put a process on a core (Debian: util-linux)", { cause });
  });
}

/** The same for a process and those that it has started. */
export async function pinWithChildren(pid: number, on: number | string): Promise<void> {
  const processes = await createProcessTable().list();
  for (const each of processes.filter((one) => one.pid === pid || one.parentPid === pid)) await pin(each.pid, on);
}

/** Lets a process, and those that it has started, give way to the load. What it starts later inherits that. */
export async function demote(pid: number): Promise<void> {
  const processes = await createProcessTable().list();
  for (const each of processes.filter((one) => one.pid === pid || one.parentPid === pid)) setPriority(each.pid, NICE);
}

/** Time of a core since the start of the machine, in ms. */
export type CoreTime = { busy: number; stolen: number };

/** Of each core by number; without those that are off. */
export async function readCoreTimes(): Promise<Map<number, CoreTime>> {
  return parseCoreTimes(await readFile("/proc/stat", "utf8"));
}

/** Hundredths of a second, for whoever asks (proc(5)). */
const TICK_MS = 10;

/** Reads proc(5)'s `stat`: user, nice, system, idle, iowait, irq, softirq, steal. */
export function parseCoreTimes(stat: string): Map<number, CoreTime> {
  const times = new Map<number, CoreTime>();
  for (const [, core, rest = ""] of stat.matchAll(/^cpu(\d+) (.*)$/gm)) {
    const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = rest.split(" ").map(Number);
    times.set(Number(core), { busy: (user + nice + system + irq + softIrq) * TICK_MS, stolen: steal * TICK_MS });
  }
  return times;
}
