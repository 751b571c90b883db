import { Agent, request } from "node:http";
import type { RunningService } from "@linkfence/testkit";
import { type ClickLoad, makeBodies } from "./click-load.ts";

/** Bodies that are made at a time while the clock stands, some 100 MB: making one costs as much as sending it. */
const PIECE = 400;

/** Sends all of them, `width` batches at a time. Returns clicks a second. Rejects when one is not stored. */
export async function sendClicks(
  ingest: RunningService,
  load: ClickLoad,
  width: number,
  seed: number,
): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const bodies = makeBodies(load, seed, Date.now());
  const url = `${ingest.url}/v1/clicks`;
  let ms = 0;
  try {
    for (let piece = take(bodies, PIECE); piece.length > 0; piece = take(bodies, PIECE)) {
      const startedAt = performance.now();
      const sender = async () => {
        for (let body = piece.pop(); body !== undefined; body = piece.pop()) await post(url, agent, body);
      };
      await Promise.all(Array.from({ length: width }, sender));
      ms += performance.now() - startedAt;
    }
  } finally {
    agent.destroy();
  }
  return (load.clicks * 1000) / ms;
}

/** The next ones, the last of them first, as they are taken from the end. */
function take(bodies: Iterator<string>, count: number): Buffer[] {
  const taken: Buffer[] = [];
  for (let next = bodies.next(); !next.done; next = bodies.next()) {
    taken.push(Buffer.from(next.value));
    if (taken.length === count) break;
  }
  return taken.reverse();
}

function post(url: string, agent: Agent, body: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": body.length };
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
