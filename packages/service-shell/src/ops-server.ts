import type { RequestListener } from "node:http";
import type { Metrics } from "./metrics.ts";

export type Readiness = { ready: boolean; reason?: string };

/**
 * Answers `/livez` (the process runs), `/readyz` (it can do its work; 503 with the reason otherwise) and `/metrics`.
 * It has a port of its own, which is not for the public.
 * @param readiness asked anew for each request
 */
export function createOpsHandler(
  metrics: Pick<Metrics, "render" | "contentType">,
  readiness: () => Readiness | Promise<Readiness>,
): RequestListener {
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0];
    const send = (status: number, body: string, type = "text/plain; charset=utf-8") => {
      response.writeHead(status, { "Content-Type": type, "Cache-Control": "no-store" });
      response.end(body);
    };
    const answer = async () => {
      if (request.method !== "GET" && request.method !== "HEAD") return send(405, "method not allowed\n");
      if (path === "/livez") return send(200, "ok\n");
      if (path === "/metrics") return send(200, await metrics.render(), metrics.contentType);
      if (path !== "/readyz") return send(404, "not found\n");
      const { ready, reason } = await readiness();
      return send(ready ? 200 : 503, ready ? "ready\n" : `not ready: ${reason ?? "starting"}\n`);
    };
    answer().catch(() => send(500, "failed\n"));
  };
}
