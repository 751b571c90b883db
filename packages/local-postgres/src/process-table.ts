import { execFile } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";

/** What the operating system says about a running process. `commandLine` is joined by single blanks. */
export type ProcessFacts = { pid: number; parentPid: number; uid: number; commandLine: string };

/** Reads running processes. A zombie counts as gone: it holds nothing any more. */
export type ProcessTable = {
  find(pid: number): Promise<ProcessFacts | undefined>;
  list(): Promise<ProcessFacts[]>;
};

/** @returns the table of this machine: /proc on Linux (slim images have no `ps`), `ps` elsewhere. */
export function createProcessTable(platform: NodeJS.Platform = process.platform): ProcessTable {
  return platform === "linux" ? createProcfsTable() : createPsTable();
}

/** Reads /proc/PID/stat and /proc/PID/cmdline (proc(5)); both are open to every user. */
function createProcfsTable(): ProcessTable {
  async function find(pid: number): Promise<ProcessFacts | undefined> {
    try {
      const directory = `/proc/${pid}`;
      const [status, commandLine, { uid }] = await Promise.all([
        readFile(`${directory}/stat`, "utf8"),
        readFile(`${directory}/cmdline`, "utf8"),
        stat(directory),
      ]);
      // "pid (name) state ppid ...": the name may itself hold blanks and parentheses, so read from the last one.
      const [state, parentPid] = status.slice(status.lastIndexOf(")") + 2).split(" ");
      if (state === "Z" || state === "X") {
        return undefined;
      }
      return { pid, parentPid: Number(parentPid), uid, commandLine: commandLine.replaceAll("\0", " ").trimEnd() };
    } catch {
      return undefined; // ended while being read
    }
  }

  async function list(): Promise<ProcessFacts[]> {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const all = await Promise.all(pids.map(find));
    return all.filter((facts) => facts !== undefined);
  }

  return { find, list };
}

const run = promisify(execFile);
const PS_COLUMNS = ["-ww", "-o", "pid=,ppid=,uid=,stat=,args="];
// `ps` answers in milliseconds; the deadline only keeps a hung one from hanging the start.
const PS_LIMITS = { timeout: 10_000, maxBuffer: 16 * 1024 * 1024 };

/** Asks `ps` (POSIX options, plus `-ww` for untruncated lines). */
export function createPsTable(): ProcessTable {
  async function find(pid: number): Promise<ProcessFacts | undefined> {
    try {
      const { stdout } = await run("ps", [...PS_COLUMNS, "-p", String(pid)], PS_LIMITS);
      return parsePsLine(stdout);
    } catch (error) {
      if (isExitCodeOne(error)) {
        return undefined; // no such process
      }
      throw error;
    }
  }

  async function list(): Promise<ProcessFacts[]> {
    const { stdout } = await run("ps", ["-ax", ...PS_COLUMNS], PS_LIMITS);
    return stdout
      .split("\n")
      .map(parsePsLine)
      .filter((facts) => facts !== undefined);
  }

  return { find, list };
}

function isExitCodeOne(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === 1;
}

function parsePsLine(line: string): ProcessFacts | undefined {
  const [, pid, parentPid, uid, state, commandLine] = /^\s*(\d+)\s+(\d+)\s+(-?\d+)\s+(\S+)\s+(.*)/.exec(line) ?? [];
  if (commandLine === undefined || state?.startsWith("Z")) {
    return undefined;
  }
  return { pid: Number(pid), parentPid: Number(parentPid), uid: Number(uid), commandLine: commandLine.trimEnd() };
}
