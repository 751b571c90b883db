// Senders of clicks that keep a batch until it is answered with counts, as redirect processes do.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import type { Click, ClickBatchResult } from "@linkfence/contracts";
import { findFreePorts, type RunningService, startService } from "@linkfence/testkit";

const DAY_MS = 86_400_000;
/** The start of yesterday, UTC. */
export const YESTERDAY = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
const AGENTS = [
  "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
  "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  null,
];
/** A batch that is not taken is sent again; long enough not to saturate the machine while a service is away. */
const AGAIN_AFTER_MS = 20;
const GIVE_UP_AFTER_MS = 60_000;

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T;

/** A UUIDv7 of a time (RFC 9562 section 5.7). */
export function idAt(at: number): string {
  const [time, random] = [at.toString(16).padStart(12, "0"), randomBytes(10).toString("hex")];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`;
}

/** A click of some visitor, some time yesterday or the day before, on one of a few links. */
export function someClick(changes: Partial<Click> = {}): Click {
  const at = changes.at ?? YESTERDAY + Math.floor((Math.random() * 2 - 1) * DAY_MS);
  return {
    id: idAt(at),
    code: pick(["one", "two", "three"]),
    version: 1,
    at,
    referrerHost: pick([null, ...Array.from({ length: 30 }, (_, n) => `site-${n}.example`)]),
    userAgent: pick(AGENTS),
    prefetch: Math.random() < 0.1,
    owner: pick(["ann", "bob"]),
    ...changes,
  };
}

export const someClicks = (count: number, changes: Partial<Click> = {}) =>
  Array.from({ length: count }, () => someClick(changes));

/** Sends a batch once. Undefined for anything but counts: the sender keeps the batch then. */
export async function sendOnce(url: string, clicks: readonly unknown[]): Promise<ClickBatchResult | undefined> {
  const answer = await fetch(`${url}/v1/clicks`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sender: "evidence", clicks }),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => null);
  if (answer?.status !== 200) return undefined;
  return (await answer.json().catch(() => undefined)) as ClickBatchResult | undefined;
}

/** Sends a batch until it is answered with counts. `url` is asked for at each attempt. */
export async function sendUntilCounted(url: () => string, clicks: readonly unknown[]): Promise<ClickBatchResult> {
  const endsAt = performance.now() + GIVE_UP_AFTER_MS;
  while (performance.now() < endsAt) {
    const result = await sendOnce(url(), clicks);
    if (result) return result;
    await pause(AGAIN_AFTER_MS);
  }
  throw new Error("a batch was not answered with counts");
}

/** Starts an ingest on a port to which every successor of it returns. */
export async function startMortalIngest(databaseUrl: string, env: Record<string, string> = {}) {
  const PORT = String(await findFreePorts(1));
  const start = () => startService("click-ingest", { STATS_DATABASE_URL: databaseUrl, PORT, ...env });
  let service: RunningService = await start();
  return {
    url: service.url,
    service: () => service,
    async restart(): Promise<void> {
      service.kill("SIGKILL");
      await service.exited;
      service = await start();
    },
    stop: () => service.stop(),
  };
}

/**
 * Starts a relay in front of an ingest, which passes batches on. Between the ingest's commit and the sender's hearing of
 * it lies `swallow`: where it says so, the answer is lost.
 * @param swallow told the answer of 200, and the batch's first id; resolves with whether it is lost
 */
export async function startSwallower(target: () => string, swallow: (id: string) => Promise<boolean>) {
  const server = createServer(async (request, response) => {
    try {
      const body = await text(request);
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch(`${target()}${request.url}`, { method: "POST", headers, body });
      const told = await answer.text();
      const { clicks } = JSON.parse(body) as { clicks: { id: string }[] };
      if (answer.status === 200 && (await swallow(clicks[0]?.id ?? ""))) response.destroy();
      else response.writeHead(answer.status, headers).end(told);
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close(): Promise<void> {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
