import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { waitFor, watchProcess } from "@linkfence/testkit";
import { cpuOf } from "./cpu-time.ts";

/** Fifty share one process on a machine that is busy: they are to be slow then, and not to connect anew. */
const QUERY_TIMEOUT_MS = "10000";

type Told = { syncs: number; listening: number };

export type LightInstances = Awaited<ReturnType<typeof startLightInstances>>;

/** Starts a process with so many followers of the change log, and waits until all of them listen. */
export async function startLightInstances(url: string, count: number) {
  const entry = fileURLToPath(new URL("light-instances.ts", import.meta.url));
  const env = { ...process.env, DATABASE_URL: url, INSTANCES: String(count), QUERY_TIMEOUT_MS };
  const child = spawn(process.execPath, ["--conditions=source", "--import", "tsx", entry], { env, stdio: "pipe" });
  const running = watchProcess(child);
  const { port } = await running.logged(({ message }) => message === "listening");
  const ask = async () => (await (await fetch(`http://127.0.0.1:${String(port)}/`)).json()) as Told;
  await waitFor("all of them listen", async () => (await ask()).listening === count);
  return {
    syncs: async () => (await ask()).syncs,
    cpuMs: () => cpuOf(running.pid),
    stop: () => running.stop(),
  };
}
