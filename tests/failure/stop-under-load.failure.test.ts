// SIGTERM to each service while it is busy: what has begun is finished, the process ends with 0, and leaves nothing.
import { describe, expect, test } from "@jest/globals";
import { createApiClient, createHttpClient, type RunningService, type Stack, startStack } from "@linkfence/testkit";

const WORKERS = 16;

/**
 * Keeps a service busy with requests of `send` until it refuses connections, having sent SIGTERM after the first
 * hundred answers. Returns every status, and how many requests were cut off after they had been sent.
 */
async function stopUnderLoad(service: RunningService, send: () => Promise<number>) {
  const statuses: number[] = [];
  let cut = 0;
  const worker = async () => {
    for (;;) {
      try {
        statuses.push(await send());
        if (statuses.length === 100) service.kill("SIGTERM");
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === "ECONNREFUSED") return;
        // A kept connection may be closed at the instant at which the next request is written to it: nothing of that
        // request was read, and any client repeats it.
        if (code !== "ECONNRESET" && code !== "EPIPE") throw error;
        cut += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return { statuses, cut, exit: await service.exited };
}

async function withStack(use: (stack: Stack, http: ReturnType<typeof createHttpClient>) => Promise<void>) {
  const stack = await startStack();
  const http = createHttpClient(WORKERS);
  try {
    await use(stack, http);
  } finally {
    http.close();
    await stack.stop();
  }
}

const clean = { code: 0, signal: null };

describe("a stop under load", () => {
  test("of redirect: every answer is a redirect, each of them is counted, and its row is gone", async () => {
    await withStack(async (stack, http) => {
      const [redirect] = stack.redirects;
      if (!redirect) throw new Error("no redirect process");
      const api = createApiClient(http, stack.write.url, stack.adminKey);
      await api("POST", "/v1/links", { target: "https://example.com/", alias: "busy" });
      expect(await stack.main.sql`SELECT 1 FROM redirect_instance`).toHaveLength(1);
      const { statuses, exit } = await stopUnderLoad(
        redirect,
        async () => (await http.send(redirect.url, "/busy")).status,
      );
      expect(exit).toEqual(clean);
      expect(new Set(statuses)).toEqual(new Set([302]));
      expect(await stack.main.sql`SELECT 1 FROM redirect_instance`).toHaveLength(0);
      const [row] = await stack.stats.sql`SELECT count(*)::int AS rows FROM click`;
      // An answer that was cut off on its way was counted all the same.
      expect(row?.rows).toBeGreaterThanOrEqual(statuses.length);
      expect(row?.rows).toBeLessThanOrEqual(statuses.length + WORKERS);
    });
  });

  test("of write: every link that was answered with 201 is there", async () => {
    await withStack(async (stack, http) => {
      const api = createApiClient(http, stack.write.url, stack.adminKey);
      const codes: string[] = [];
      const { statuses, exit } = await stopUnderLoad(stack.write, async () => {
        const { status, json } = await api<{ code: string }>("POST", "/v1/links", { target: "https://example.com/" });
        codes.push(json.code);
        return status;
      });
      expect(exit).toEqual(clean);
      expect(new Set(statuses)).toEqual(new Set([201]));
      const rows = await stack.main.sql`SELECT code FROM link WHERE code = ANY(${codes})`;
      expect(rows).toHaveLength(statuses.length);
    });
  });

  test("of click-ingest: every click that was answered for is stored, and the rest is kept by the redirect", async () => {
    await withStack(async (stack, http) => {
      const [redirect] = stack.redirects;
      if (!redirect) throw new Error("no redirect process");
      let n = 0;
      const send = async () => {
        const at = Date.now();
        const id = clickId(at, n++);
        const clicks = [{ id, code: "abc", version: 1, at, referrerHost: null, userAgent: null }];
        const body = JSON.stringify({ sender: "test", clicks });
        const headers = { "Content-Type": "application/json" };
        return (await http.send(stack.ingest.url, "/v1/clicks", { method: "POST", headers, body })).status;
      };
      const { statuses, exit } = await stopUnderLoad(stack.ingest, send);
      expect(exit).toEqual(clean);
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      const answered = statuses.filter((status) => status === 200).length;
      const [row] = await stack.stats.sql`SELECT count(*)::int AS rows FROM click`;
      expect(answered).toBeGreaterThanOrEqual(100);
      expect(row?.rows).toBeGreaterThanOrEqual(answered);
    });
  });
});

/** A UUIDv7 (RFC 9562 section 5.7) of a time and a number. */
function clickId(at: number, n: number): string {
  const time = at.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${n.toString(16).padStart(12, "0")}`;
}
