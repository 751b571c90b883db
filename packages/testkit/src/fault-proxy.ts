import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/**
 * `pass` forwards; `hang` keeps every connection open and forwards nothing, in either direction, as a black hole does;
 * `mute` loses what the server says, and only that.
 */
export type FaultMode = "pass" | "hang" | "mute" | "refuse";

export type FaultProxy = {
  port: number;
  /** The URL with host and port replaced by the proxy's. */
  through(url: string): string;
  /**
   * Takes effect at once, on open connections too; `refuse` resets them. What met a `hang` or `mute` is lost, and nothing
   * comes after it any more on that connection, in that direction.
   */
  set(mode: FaultMode): void;
  /**
   * Keeps whatever comes from now on for so many milliseconds, in either direction, and lets no more than so many bytes a
   * second pass on each connection. `delay(0)` ends both.
   */
  delay(ms: number, bytesPerSecond?: number): void;
  /** Leads to another server on loopback from now on; open connections stay where they are. */
  lead(targetPort: number): void;
  /** Resets every open connection and goes on. Returns how many there were. */
  reset(): number;
  /** Clients connected now. */
  connections(): number;
  close(): Promise<void>;
};

/**
 * Starts a TCP proxy on loopback in front of a server on loopback, to break the connection between the two on command.
 * @param targetPort the server's port
 */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  let mode: FaultMode = "pass";
  let delayMs = 0;
  let rate = Number.POSITIVE_INFINITY;
  let serverPort = targetPort;
  const pairs = new Set<{ client: Socket; server: Socket }>();

  const listener = createServer((client) => {
    client.on("error", () => {});
    if (mode === "refuse") {
      client.resetAndDestroy();
      return;
    }
    const server = connect(serverPort, "127.0.0.1");
    server.on("error", () => {});
    const pair = { client, server };
    pairs.add(pair);
    forward(client, server, () => mode === "pass" || mode === "mute");
    forward(server, client, () => mode === "pass");
    client.once("close", () => end(pair));
    server.once("close", () => end(pair));
  });

  /**
   * Forwards what comes while `passes` says so, in order, however the delay changes meanwhile. Once something was lost
   * nothing follows it: no network leaves a gap in what is read from a connection.
   */
  function forward(from: Socket, to: Socket, passes: () => boolean): void {
    let broken = false;
    let kept = 0;
    let before = Promise.resolve();
    const inOrder = (act: () => void, bytes = 0) => {
      if (!passes()) broken = true;
      if (broken) return;
      // By the rate of its turn: what waits goes on at once when the line is a fast one again.
      const sendMs = () => (bytes * 1000) / rate;
      if (kept === 0 && delayMs === 0 && sendMs() === 0) return act();
      kept += 1;
      before = Promise.all([before.then(() => pause(sendMs())), pause(delayMs)]).then(() => {
        kept -= 1;
        act();
      });
    };
    from.on("data", (chunk) => inOrder(() => to.write(chunk), chunk.length));
    from.on("end", () => inOrder(() => to.end()));
  }

  const hidesEnds = () => mode === "hang" || mode === "mute";

  function end(pair: { client: Socket; server: Socket }): void {
    if (hidesEnds()) return;
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  }

  /** What ended while nobody was told of it. */
  function endHalves(): void {
    for (const pair of pairs) if (pair.client.destroyed || pair.server.destroyed) end(pair);
  }

  function reset(): number {
    const count = pairs.size;
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    pairs.clear();
    return count;
  }

  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    through(url) {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(port);
      return changed.href;
    },
    set(next) {
      mode = next;
      if (next === "refuse") reset();
      else endHalves();
    },
    delay(ms, bytesPerSecond = Number.POSITIVE_INFINITY) {
      delayMs = ms;
      rate = bytesPerSecond;
    },
    lead(nextPort) {
      serverPort = nextPort;
    },
    reset,
    connections: () => [...pairs].filter(({ client }) => !client.destroyed).length,
    close() {
      mode = "pass";
      reset();
      return new Promise((resolve) => listener.close(() => resolve()));
    },
  };
}
