// What the system knows of a process's memory (proc(5)).
import { readFile, writeFile } from "node:fs/promises";

/** Bytes in memory now, or at the most since `forgetPeak`; NaN where the system does not tell. */
export async function readMemory(pid: number, name: "VmRSS" | "VmHWM"): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
}

/** Has the peak counted from now on (clear_refs). Rejects where there is no such thing. */
export async function forgetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}
