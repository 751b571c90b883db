// Where the load comes from: wrk where it is installed, else a client of our own. autocannon is none for this: on one core
// it sends fewer requests than a bare server answers on another.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cpuOf } from "../cpu-time.ts";

const run = promisify(execFile);
const CLIENT = fileURLToPath(new URL("client.mjs", import.meta.url));
const SCRIPT = fileURLToPath(new URL("wrk.lua", import.meta.url));
/** What starts and ends a load beside the load itself. */
const GRACE_MS = 20_000;
/** Enough to keep a server busy on one core. */
export const CONNECTIONS = 64;

export type Load = {
  port: number;
  seconds: number;
  /** File of the paths to ask for, one a line, in this order and then anew. */
  paths: string;
  headers: Readonly<Record<string, string>>;
  /** Requests a second; null for as many as there are answers. */
  rate: number | null;
  /** What the answers have to be, or any of these. */
  status: number | readonly number[];
};

export type LoadResult = {
  /** Answers in a second. */
  rate: number;
  answered: number;
  /** Median and p99 in ms. */
  p50: number;
  p99: number;
  /** How long it was, and how much of a processor the load took, in ms. */
  ms: number;
  cpuMs: number;
};

/** Says which of the two there is. */
export async function findLoad(): Promise<"wrk" | "client"> {
  const found = await run("wrk", ["-v"], { timeout: GRACE_MS }).catch((error: { stdout?: string }) => error);
  return found.stdout?.startsWith("wrk") ? "wrk" : "client";
}

/**
 * Runs a load to its end, in a process of its own.
 * @throws Error where any answer is another than it has to be
 */
export async function runLoad(program: "wrk" | "client", load: Load): Promise<LoadResult> {
  const [command, args] = program === "wrk" && load.rate === null ? wrk(load) : ownClient(load);
  return runMeasured(command, args, load.seconds, { mayRefuse: typeof load.status !== "number" });
}

/**
 * Runs a program that prints what came of it as one line of JSON: `answered`, `failed`, `ms`, `p50`, `p99`, and `refused`
 * where it takes answers from 400 on for errors. Only one at a time, since its use of processors is what ended meanwhile.
 * @param mayRefuse such answers are what is asked for
 * @throws Error where anything failed
 */
export async function runMeasured(
  command: string,
  args: readonly string[],
  seconds: number,
  { mayRefuse = false } = {},
): Promise<LoadResult> {
  const before = await cpuOfFormer();
  const { stdout } = await run(command, args, { timeout: seconds * 1000 + GRACE_MS });
  const told = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Omit<LoadResult, "rate" | "cpuMs"> & {
    failed: number;
    refused?: number;
  };
  const { answered, ms, p50, p99 } = told;
  const failed = told.failed + (mayRefuse ? 0 : (told.refused ?? 0));
  if (failed > 0 || answered === 0)
    throw new Error(`${failed} of ${answered + failed} requests were not answered as they should be`);
  return { rate: (answered * 1000) / ms, answered, ms, p50, p99, cpuMs: (await cpuOfFormer()) - before };
}

/** What processes took that this one has started and that have ended. */
async function cpuOfFormer(): Promise<number> {
  const [all, own] = [await cpuOf(process.pid, true), await cpuOf(process.pid)];
  return all - own;
}

function wrk({ port, seconds, paths, headers }: Load): [string, string[]] {
  const fields = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const how = ["-t1", `-c${CONNECTIONS}`, `-d${seconds}s`, "--timeout", "5s", "-s", SCRIPT];
  return ["wrk", [...how, ...fields, `http://127.0.0.1:${port}/`, "--", paths]];
}

function ownClient(load: Load): [string, string[]] {
  return [process.execPath, [CLIENT, JSON.stringify({ ...load, connections: CONNECTIONS })]];
}
