import { Agent, request } from "node:http";
import type { RunningService } from "@linkfence/testkit";
import { type ClickLoad, makeBodies } from "./click-load.ts";

/** Sends all of them, `width` batches at a time. Returns clicks a second. Rejects when one is not stored. */
export async function sendClicks(
  ingest: RunningService,
  load: ClickLoad,
  width: number,
  seed: number,
): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const bodies = makeBodies(load, seed, Date.now());
  const startedAt = performance.now();
  const sender = async () => {
    for (let next = bodies.next(); !next.done; next = bodies.next())
      await post(`${ingest.url}/v1/clicks`, agent, next.value);
  };
  try {
    await Promise.all(Array.from({ length: width }, sender));
  } finally {
    agent.destroy();
  }
  return (load.clicks * 1000) / (performance.now() - startedAt);
}

function post(url: string, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    const call = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume().once("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the ingest answered ${response.statusCode}`));
      });
    });
    call.once("error", reject);
    call.end(body);
  });
}
