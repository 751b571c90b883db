import { connect, type Socket } from "node:net";

/** Where a server can be reached: host name or address, and TCP port. */
export type Endpoint = { host: string; port: number };

/**
 * Opens the driver's sockets and remembers them, so that all of them can be destroyed at once. The driver itself only
 * half-closes: towards a peer that never answers again such a socket would live until the kernel gives up, minutes later.
 *
 * The socket is handed over before it is connected. The driver writes into its buffer and sees an ordinary `error` and
 * `close` when the connection fails; a factory that rejects would leave the driver's slot lost for good.
 * Several endpoints are tried in turn, one per attempt.
 */
export function createSocketSet(endpoints: readonly Endpoint[]) {
  const open = new Set<Socket>();
  let next = 0;

  function connectNext(): Socket {
    const endpoint = endpoints[next++ % endpoints.length];
    if (!endpoint) throw new RangeError("a database URL must name a host");
    const socket = Object.assign(connect(endpoint), endpoint);
    socket.setNoDelay(true);
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    return socket;
  }

  function destroyAll(): void {
    for (const socket of open) socket.destroy();
  }

  return { connectNext, destroyAll, size: () => open.size };
}
