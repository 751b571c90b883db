import { createServer } from "node:net";

/** Tells which of some loopback ports somebody else listens on, by listening on each for a moment. */
export async function findTakenPorts(ports: readonly number[]): Promise<number[]> {
  const taken = await Promise.all(ports.map(async (port) => ((await isFree(port)) ? [] : [port])));
  return taken.flat().sort((a, b) => a - b);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
