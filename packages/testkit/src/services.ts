import { type RunningProcess, spawnProcess } from "./processes.ts";

export type ServiceName = "write" | "redirect" | "click-ingest";
export type RunningService = RunningProcess & {
  /** Base URL of the service's public port, without a trailing slash. */
  url: string;
  /** Base URL of its ops port. */
  opsUrl: string;
};

/** A machine that runs several tests at once may take seconds for a query: a deadline that is not the subject is out of its reach. */
export const PATIENT = { QUERY_TIMEOUT_MS: "10000" };

const OF_ALL = { PORT: "0", OPS_PORT: "0", LOG_LEVEL: "info" };
/** A redirect process sets room for its links aside when it starts: for a million it takes half a second, and tests have few. */
const DEFAULTS = { write: OF_ALL, "click-ingest": OF_ALL, redirect: { ...OF_ALL, CACHE_MAX_ENTRIES: "50000" } };

/** Of a redirect process: no clicks are stored and none are waited for, as nobody listens on the discard port. */
export const WITHOUT_STATISTICS = { CLICK_INGEST_URL: "http://127.0.0.1:9", CLICK_FLUSH_TIMEOUT_MS: "0" };

/**
 * Starts one service on ports that the system chooses and waits until it listens. The environment is the service's own;
 * ports, log level and the size of a cache are filled in where they are missing.
 * @param timeoutMs for the start, after which it rejects
 */
export async function startService(
  name: ServiceName,
  env: Record<string, string>,
  timeoutMs?: number,
): Promise<RunningService> {
  const child = spawnProcess(`services/${name}/dist/main.js`, { ...DEFAULTS[name], ...env });
  const { port, opsPort } = await child.logged((record) => record.message === "listening", timeoutMs);
  return { ...child, url: `http://127.0.0.1:${String(port)}`, opsUrl: `http://127.0.0.1:${String(opsPort)}` };
}
