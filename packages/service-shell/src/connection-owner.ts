import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Gives a connection to Node's HTTP server for good, with what was read of it and not used. The owner has no listener on it. */
export type PassOn = (unread: Buffer | null) => void;

/**
 * Whoever has the connections of a server before Node's own HTTP does, and answers on them what it likes to. What it does not
 * answer it passes on.
 */
export type ConnectionOwner = {
  /** Takes a new connection, which has no listener. */
  own(socket: Socket, passOn: PassOn): void;
  /** A request on it is still to be answered, or its answer to be read. */
  isPending(socket: Duplex): boolean;
  /** Passes on all connections, each when it is not pending any more, and whatever comes. */
  passOn(): void;
  /** Destroys the connections that have had an answer and are not pending. */
  endIdle(): void;
};

/**
 * Puts the owner before Node's handling of new connections. To be called right after `createServer`, when nobody else listens
 * for them. Node's listener is then called by us, as for a connection that was opened elsewhere (Node.js manual, the event
 * `connection` of `http.Server`, which users may emit).
 */
export function setBefore(server: Server, owner: ConnectionOwner): void {
  const nodes = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    // Beyond the bound of connections.
    if (socket.destroyed) return;
    owner.own(socket, (unread) => {
      socket.setTimeout(0);
      // Nothing is read before there is somebody to hear it.
      socket.pause();
      if (unread !== null) socket.unshift(unread);
      for (const listener of nodes) listener.call(server, socket);
      socket.resume();
    });
  });
}
