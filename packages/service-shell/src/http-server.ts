import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import type { AddressInfo } from "node:net";

export type HttpServerOptions = {
  port: number;
  /** Address to listen on. */
  host: string;
  /** Connections at the most; more are closed at once. */
  maxConnections: number;
};

export type RunningServer = {
  port: number;
  server: Server;
  /** Stops accepting, lets requests under way finish, and destroys what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

/** Slow senders are cut off within seconds; a header block of a browser is far below 8 KiB. */
const LIMITS: ServerOptions = {
  headersTimeout: 5000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
  // Above the idle time of common load balancers (60 s), so that they close first and never write into a closed socket.
  keepAliveTimeout: 72_000,
};

/**
 * Starts an HTTP server with tight limits. Rejects with the system's error, whose message names address and port.
 * @param listener handles the requests; how Express wants its request and response made goes into `classes`
 */
export async function listen(
  listener: RequestListener,
  options: HttpServerOptions,
  classes: Pick<ServerOptions, "IncomingMessage" | "ServerResponse"> = {},
): Promise<RunningServer> {
  const server = createServer({ ...LIMITS, ...classes } as ServerOptions, listener);
  server.maxConnections = options.maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return { port: (server.address() as AddressInfo).port, server, close: (timeoutMs) => closeServer(server, timeoutMs) };
}

/** `close` also ends idle keep-alive connections; a busy one ends after its answer, which says `Connection: close`. */
function closeServer(server: Server, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    const force = setTimeout(() => server.closeAllConnections(), timeoutMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
