import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { sharedContractCheck } from "./contract-check.ts";

export type HttpAnswer = { status: number; headers: IncomingHttpHeaders; body: string };
export type HttpRequest = { method?: string; headers?: Record<string, string>; body?: string; timeoutMs?: number };
export type HttpClient = ReturnType<typeof createHttpClient>;

/**
 * A client that sends exactly what it is told: paths are not normalised, redirects are not followed. It keeps its
 * connections; `close` ends them.
 * @param connections connections to one server at the most
 */
export function createHttpClient(connections = 16) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  function send(base: string, path: string, options: HttpRequest = {}): Promise<HttpAnswer> {
    const { method = "GET", headers = {}, body, timeoutMs = 30_000 } = options;
    const { hostname, port } = new URL(base);
    return new Promise((resolve, reject) => {
      const outgoing = request({ agent, hostname, port, path, method, headers, timeout: timeoutMs }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
        });
      });
      outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }

  return { send, close: () => agent.destroy() };
}

/** Sends anything to the admin API. Rejects when the answer is not what the OpenAPI document says. */
export async function sendChecked(http: HttpClient, base: string, path: string, options: HttpRequest = {}) {
  const answer = await http.send(base, path, options);
  sharedContractCheck().check(options.method ?? "GET", path, answer);
  return answer;
}

/** Calls the admin API: sends JSON with a key, and reads the JSON of the answer, which is checked as `sendChecked` says. */
export function createApiClient(http: HttpClient, base: string, key: string) {
  return async <T>(method: string, path: string, body?: unknown): Promise<{ status: number; json: T }> => {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await sendChecked(http, base, path, { method, headers, ...text });
    return { status: answer.status, json: (answer.body === "" ? {} : JSON.parse(answer.body)) as T };
  };
}

/** Runs `work` for each item, `width` at a time, and returns the results in the order of the items. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++)
      results[index] = await work(items[index] as T, index);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}
