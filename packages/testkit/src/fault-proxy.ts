import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** `pass` forwards; `hang` keeps every connection open and forwards nothing, in either direction, as a black hole does. */
export type FaultMode = "pass" | "hang" | "refuse";

export type FaultProxy = {
  port: number;
  /** The URL with host and port replaced by the proxy's. */
  through(url: string): string;
  /** Takes effect at once, on open connections too; `refuse` resets them. Bytes that met a `hang` are lost. */
  set(mode: FaultMode): void;
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
    forward(client, server);
    forward(server, client);
    client.once("close", () => end(pair));
    server.once("close", () => end(pair));
  });

  function forward(from: Socket, to: Socket): void {
    from.on("data", (chunk) => {
      if (mode === "pass") to.write(chunk);
    });
    from.on("end", () => {
      if (mode === "pass") to.end();
    });
  }

  function end(pair: { client: Socket; server: Socket }): void {
    if (mode === "hang") return;
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
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
