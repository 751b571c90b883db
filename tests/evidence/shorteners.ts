// Two shorteners for a browser to follow links on: the product, and one that says nothing to caches.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createApiClient, createHttpClient, startStack, waitFor } from "@linkfence/testkit";

export type Shortener = {
  /** Base URL of the links. */
  url: string;
  create(code: string, target: string): Promise<void>;
  /** Resolves when the shortener itself answers the link with 410. */
  revoke(code: string): Promise<void>;
  stop(): Promise<void>;
};

/** Starts the whole product, with one redirect process that does not remember unknown codes. */
export async function startLinkfence(): Promise<Shortener> {
  const stack = await startStack({ redirectEnv: { NEGATIVE_TTL_MS: "0" } });
  const http = createHttpClient();
  const api = createApiClient(http, stack.write.url, stack.adminKey);
  const url = stack.redirects[0]?.url ?? "";
  return {
    url,
    async create(alias, target) {
      const { status, json } = await api("POST", "/v1/links", { alias, target });
      if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
    },
    async revoke(code) {
      await api("DELETE", `/v1/links/${code}?wait=committed`);
      await waitFor("a revoked link to be gone", async () => (await http.send(url, `/${code}`)).status === 410);
    },
    async stop() {
      http.close();
      await stack.stop();
    },
  };
}

/** Starts a shortener that answers 301, 404 and 410, and leaves it to every cache what to keep and for how long. */
export async function startSilentShortener(): Promise<Shortener> {
  const targets = new Map<string, string | null>();
  const server = createServer((request, response) => {
    const target = targets.get(request.url?.slice(1) ?? "");
    if (target) response.setHeader("Location", target);
    response.statusCode = target ? 301 : target === null ? 410 : 404;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async create(code, target) {
      targets.set(code, target);
    },
    async revoke(code) {
      targets.set(code, null);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
