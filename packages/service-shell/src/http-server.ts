import { createServer, type RequestListener, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isLongUpload } from "./long-upload.ts";

export type HttpServerOptions = {
  port: number;
  /** Address to listen on. */
  host: string;
  /** Connections at the most; more are closed at once. */
  maxConnections: number;
  /** Refuse requests without a Host field unseen; default true. Who turns this off refuses them in its own words. */
  requireHost?: boolean;
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
 * A connection on which nothing moves for so long is cut off: it asked, and reads no answer. The longest request takes
 * half of it; idle kept connections have their own time.
 */
const STALLED_MS = 30_000;
/** A connection without a request under way gets so long, at a stop, to finish sending one. */
const SILENT_AT_STOP_MS = 1000;

/**
 * Starts an HTTP server with tight limits. Rejects with the system's error, whose message names address and port.
 */
export async function listen(listener: RequestListener, options: HttpServerOptions): Promise<RunningServer> {
  const server = createServer({ ...LIMITS, requireHostHeader: options.requireHost ?? true }, listener);
  // By default Node hides the fields after the first thousand. The size of the block bounds them already.
  server.maxHeadersCount = 0;
  server.setTimeout(STALLED_MS);
  const latest = trackLatest(server);
  server.on("clientError", (error, socket) => refuseUnreadable(error, socket, latest.get(socket)));
  // An Expect that is not known is ignored, which RFC 9110 section 10.1.1 allows, rather than answered behind our back.
  server.on("checkExpectation", listener);
  server.maxConnections = options.maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  return { port, server, close: (timeoutMs) => closeServer(server, latest, timeoutMs) };
}

/** The open connections, each with the response to its latest request. Responses of a connection end in order. */
type Latest = ReadonlyMap<Duplex, ServerResponse | null>;

/** One assignment a request, and no listener: redirects pay for this, too. */
function trackLatest(server: Server): Latest {
  const connections = new Map<Duplex, ServerResponse | null>();
  server.on("connection", (socket: Socket) => {
    connections.set(socket, null);
    socket.once("close", () => connections.delete(socket));
  });
  const begin = ({ socket }: { socket: Socket }, response: ServerResponse) => void connections.set(socket, response);
  server.prependListener("request", begin).prependListener("checkExpectation", begin);
  return connections;
}

function isPending(response: ServerResponse | null | undefined): response is ServerResponse {
  return response != null && !response.writableFinished && !response.destroyed;
}

/**
 * What cannot be read as a request is answered as briefly as can be, and kept by no cache. Behind requests whose answers
 * are still to come it is not answered at all: its answer would be taken for theirs.
 */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  latest: ServerResponse | null | undefined,
): void {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && isPending(latest) && isLongUpload(latest.req)) return;
  if (isPending(latest) && socket.writable) {
    latest.once("finish", () => socket.end());
    return;
  }
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
  else socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n`);
}

/**
 * Idle kept connections end at once; a busy one is idle after its answer, and ends at the next sweep. The listening socket
 * closes first, which Node's own `close` of an HTTP server does last: whoever sees an idle connection end and connects
 * anew is then refused, and can go elsewhere, instead of being accepted by the kernel and reset.
 */
function closeServer(server: Server, latest: Latest, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const silentUntil = performance.now() + Math.min(SILENT_AT_STOP_MS, timeoutMs);
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      // Node does not call a connection idle that has sent nothing so far, or a part of a request.
      if (performance.now() < silentUntil) return;
      for (const [socket, response] of latest) if (!isPending(response)) socket.destroy();
    }, 50);
    const force = setTimeout(() => server.closeAllConnections(), timeoutMs);
    NetServer.prototype.close.call(server, () => {
      clearInterval(sweep);
      clearTimeout(force);
      resolve();
    });
    // Ends the idle connections, and the timer that checks for slow requests.
    server.close();
  });
}
