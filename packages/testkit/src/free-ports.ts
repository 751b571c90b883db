import { createServer } from "node:net";

/** Below the range that systems hand out by themselves (32768 on Linux), so that nobody gets one of them by chance. */
const FIRST = 10_000;
const LAST = 32_000;
const ATTEMPTS = 50;

/** Finds the first of `count` loopback ports in a row on which nobody listens. Throws when 50 places are all taken. */
export async function findFreePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const base = FIRST + Math.floor(Math.random() * (LAST - FIRST - count));
    const free = await Promise.all(Array.from({ length: count }, (_, offset) => isFree(base + offset)));
    if (free.every(Boolean)) return base;
  }
  throw new Error(`no ${count} free ports in a row`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
