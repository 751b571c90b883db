// A redirect process of its own, without statistics, and what can be asked of it.
import {
  createHttpClient,
  type HttpAnswer,
  PATIENT,
  type RunningService,
  readMetric,
  startService,
  WITHOUT_STATISTICS,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";

const CONNECTIONS = 64;

/** An answer, when its request was sent, and how long it took, in ms of `performance.now()`. */
export type Visit = HttpAnswer & { sentAt: number; ms: number };

export type RedirectProcess = Awaited<ReturnType<typeof startRedirect>>;

/** Starts a redirect process on a main database and waits until it is ready. `env` is its settings. */
export async function startRedirect(databaseUrl: string, env: Record<string, string>) {
  const service = await startService("redirect", {
    DATABASE_URL: databaseUrl,
    ...PATIENT,
    ...WITHOUT_STATISTICS,
    ...env,
  });
  const http = createHttpClient(CONNECTIONS);
  let ended = false;
  void service.exited.then(() => {
    ended = true;
  });
  await waitUntilReady(service);

  async function visit(path: string): Promise<Visit> {
    const sentAt = performance.now();
    const answer = await http.send(service.url, `/${path}`);
    return { ...answer, sentAt, ms: performance.now() - sentAt };
  }

  return {
    service,
    visit,
    status: async (path: string) => (await visit(path)).status,
    metric: (sample: string) => readMetric(service, sample),
    flushes: () => readFlushes(service),
    /** The same when it began to follow the log for the `starts`th time: whoever forgot begins anew a moment later. */
    flushesAfterStarts: (starts: number) =>
      waitFor(`${starts} starts`, async () => {
        const flushes = await readFlushes(service);
        return flushes.started === starts && flushes;
      }),
    listening: async () => (await readMetric(service, "linkfence_listening")) === 1,
    /** Whether it still runs, and never said that anything was wrong with itself. */
    isUnhurt: () => !ended && !service.records().some(({ level }) => level === "error"),
    async stop(): Promise<void> {
      http.close();
      await service.stop();
    },
  };
}

/** How often everything in memory was forgotten, by cause. */
async function readFlushes(service: RunningService): Promise<Record<string, number>> {
  const page = await (await fetch(`${service.opsUrl}/metrics`)).text();
  const samples = page.matchAll(/^linkfence_flushes_total\{cause="(.+)"\} (\d+)$/gm);
  return Object.fromEntries([...samples].map(([, cause, count]) => [cause, Number(count)]));
}
