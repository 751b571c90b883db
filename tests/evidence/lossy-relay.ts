import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type LossyRelay = {
  url: string;
  /** The ids of each batch that came, in order of arrival, and whether its answer was passed on. */
  batches: { ids: string[]; answered: boolean }[];
  close(): Promise<void>;
};

/**
 * Starts a relay of click batches that loses the answer to each batch once: the ingest has answered, which means that it
 * has committed, and the sender finds its connection ended.
 * @param ingestUrl tells the ingest's base URL
 */
export async function startLossyRelay(ingestUrl: () => string): Promise<LossyRelay> {
  const batches: LossyRelay["batches"] = [];
  const lost = new Set<string>();

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(request);
    const { clicks } = JSON.parse(body) as { clicks: { id: string }[] };
    const [first = ""] = clicks.map(({ id }) => id);
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${ingestUrl()}${request.url}`, { method: "POST", headers, body });
    const text = await answer.text();
    // Only an answer that tells of a commit counts as lost; the others are passed on.
    const answered = answer.status !== 200 || lost.has(first);
    batches.push({ ids: clicks.map(({ id }) => id), answered });
    if (answered) response.writeHead(answer.status, headers).end(text);
    else response.destroy();
    lost.add(first);
  }

  const server = createServer((request, response) => {
    relay(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    batches,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
