import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOwner, setBefore } from "./connection-owner.ts";
import { isLongUpload } from "./long-upload.ts";

export type HttpServerOptions = {
  port: number;
  /** Address to listen on. */
  host: string;
  /** Connections at the most; more are closed at once. */
  maxConnections: number;
  /**
   * The port is shared with other processes of a `node:cluster`. Node then hands a connection beyond `maxConnections` back, to
   * be tried on another process, and on and on where all of them are full; with this it is closed here, as it is elsewhere.
   */
  isShared?: boolean;
  /** Refuse requests without a Host field unseen; default true. Who turns this off refuses them in its own words. */
  requireHost?: boolean;
  /**
   * The Express app that requests are for, which would otherwise change the prototype of each of them, and so make every
   * access to them slow.
   */
  app?: ExpressLike;
  /** Has new connections before Node's HTTP, which gets those that it passes on. */
  owner?: ConnectionOwner;
  /** A request, its body included, must be here within this time; default 15 s. */
  requestTimeoutMs?: number;
};

/** What requests and responses of an Express app inherit from. */
type ExpressLike = { request: IncomingMessage; response: ServerResponse };

/** What one server counts; the numbers only grow, but for `open`. */
export type ServerStats = {
  /** Open connections. */
  open: number;
  /** Connections closed at once, since there were too many. */
  refused: number;
  /** Requests that were never read whole, by what was wrong with them. */
  unreadable: Readonly<Record<"malformed" | "oversized" | "slow" | "connect", number>>;
};

export type RunningServer = {
  port: number;
  server: Server;
  stats(): ServerStats;
  /** Stops accepting, lets requests under way finish, and destroys what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

/** Slow senders are cut off within seconds: a header block needs a few, the largest batch over a slow line some more. */
const HEADERS_TIMEOUT_MS = 5000;
const REQUEST_TIMEOUT_MS = 15_000;
/** Above the idle time of common load balancers (60 s), so that they close first and never write into a closed socket. */
export const KEEP_ALIVE_MS = 72_000;
/** A header block of a browser, the request's target included, is far below 8 KiB. */
const LIMITS: ServerOptions = {
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
  keepAliveTimeout: KEEP_ALIVE_MS,
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
  const { requireHost = true, requestTimeoutMs: requestTimeout = REQUEST_TIMEOUT_MS } = options;
  const headersTimeout = Math.min(HEADERS_TIMEOUT_MS, requestTimeout);
  const classes = options.app ? classesFor(options.app) : {};
  const times = { requestTimeout, headersTimeout, requireHostHeader: requireHost };
  const server = createServer({ ...LIMITS, ...times, ...classes });
  if (options.owner) setBefore(server, options.owner);
  // By default Node hides the fields after the first thousand. The size of the block bounds them already.
  server.maxHeadersCount = 0;
  server.setTimeout(STALLED_MS);
  const latest = trackLatest(server, listener);
  if (options.isShared) refuseBeyond(options.maxConnections, server, latest);
  const counts = { refused: 0, unreadable: { malformed: 0, oversized: 0, slow: 0, connect: 0 } };
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const kind = KINDS[error.code ?? ""] ?? "malformed";
    const response = latest.get(socket);
    // Not too slow for its handler, which watches over it.
    if (kind === "slow" && isPending(response) && isLongUpload(response.req)) return;
    // Reset by its client, which had nothing to say any more.
    if (error.code === "ECONNRESET") socket.destroy();
    else {
      counts.unreadable[kind] += 1;
      refuseUnreadable(STATUS[kind], socket, response);
    }
  });
  server.on("drop", () => {
    counts.refused += 1;
  });
  // No service is a tunnel. Node would close the connection without a word.
  server.on("connect", (_request, socket) => {
    counts.unreadable.connect += 1;
    endForGood(
      socket.on("error", () => socket.destroy()),
      briefAnswer("400 Bad Request"),
    );
  });
  server.on("checkContinue", (request, response) => {
    // Who asks before it sends a body is told to go on when that is read, and never where the call is refused without it.
    request.once("resume", () => {
      if (!response.headersSent) response.writeContinue();
    });
    listener(request, response);
  });
  // An Expect that is not known is ignored, which RFC 9110 section 10.1.1 allows, rather than answered behind our back.
  server.on("checkExpectation", listener);
  if (!options.isShared) server.maxConnections = options.maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  const stats = () => ({ ...counts, open: latest.size });
  return {
    port,
    server,
    stats,
    close: (timeoutMs) => closeServer(server, { latest, owner: options.owner }, timeoutMs),
  };
}

/**
 * Classes for `http.createServer` (Node's manual, its options) whose instances have from the beginning the prototypes that
 * the app would give them. They are subclasses, so that the engine makes room at once for all that Node's constructors
 * set, and the app is told of them, as what it looks for is what they have.
 */
function classesFor(app: ExpressLike): ServerOptions {
  class Request extends IncomingMessage {}
  class Response extends ServerResponse {}
  Object.setPrototypeOf(Request.prototype, app.request);
  Object.setPrototypeOf(Response.prototype, app.response);
  Object.assign(app, { request: Request.prototype, response: Response.prototype });
  return { IncomingMessage: Request, ServerResponse: Response } as ServerOptions;
}

/** Runs before Node's own listener, which then meets a connection that has ended. */
function refuseBeyond(maxConnections: number, server: Server, latest: Latest): void {
  server.prependListener("connection", (socket: Socket) => {
    if (latest.size < maxConnections) return;
    server.emit("drop");
    socket.destroy();
  });
}

/** The open connections, each with the response to its latest request. Responses of a connection end in order. */
type Latest = ReadonlyMap<Duplex, ServerResponse | null>;
type Connections = { latest: Latest; owner: ConnectionOwner | undefined };

/**
 * Has the listener answer the server's requests, and notes each before. One assignment a request, and no listener of its own:
 * redirects pay for this, too, and of several listeners Node copies the list for each request.
 */
function trackLatest(server: Server, listener: RequestListener): Latest {
  const connections = new Map<Duplex, ServerResponse | null>();
  server.on("connection", (socket: Socket) => {
    connections.set(socket, null);
    socket.once("close", () => connections.delete(socket));
  });
  const begin = ({ socket }: { socket: Socket }, response: ServerResponse) => void connections.set(socket, response);
  server.on("request", (request, response) => {
    begin(request, response);
    listener(request, response);
  });
  for (const event of ["checkContinue", "checkExpectation"]) server.on(event, begin);
  return connections;
}

function isPending(response: ServerResponse | null | undefined): response is ServerResponse {
  return response != null && !response.writableFinished && !response.destroyed;
}

/** What Node's error codes stand for; everything else is malformed. */
const KINDS: Readonly<Record<string, "oversized" | "slow">> = {
  HPE_HEADER_OVERFLOW: "oversized",
  ERR_HTTP_REQUEST_TIMEOUT: "slow",
};
const STATUS = {
  malformed: [400, "Bad Request"],
  oversized: [431, "Request Header Fields Too Large"],
  slow: [408, "Request Timeout"],
} as const;
type Status = (typeof STATUS)[keyof typeof STATUS];

/**
 * What cannot be read as a request is answered as briefly as can be, and kept by no cache. Behind requests whose answers
 * are still to come it is not answered at all: its answer would be taken for theirs. What is wrong within a body, or takes
 * too long there, belongs to such a request itself: that one's answer is then the server's. One that has its answer gets
 * no other.
 */
function refuseUnreadable([code, phrase]: Status, socket: Duplex, latest: ServerResponse | null | undefined): void {
  const withinBody = latest?.req.complete === false;
  if (!socket.writable) socket.destroy();
  else if (isPending(latest)) {
    if (withinBody) endUnread(latest, code);
    else latest.once("finish", () => endForGood(socket));
  } else endForGood(socket, withinBody ? "" : briefAnswer(`${code} ${phrase}`));
}

/** Its client may go on sending without end, and need not close its side: nothing of it is waited for. */
function endForGood(socket: Duplex, lastWords = ""): void {
  socket.end(lastWords, () => socket.destroy());
}

/**
 * Its handler waits for the rest of the body. Node tells it that none will come only while there is no answer, so that
 * it is told here; it would wait for ever.
 */
function endUnread(response: ServerResponse, code: number): void {
  const { req: request } = response;
  request.socket.once("close", () => request.destroy());
  if (response.headersSent) response.destroy();
  else response.writeHead(code, { Connection: "close", "Cache-Control": "no-store", "Content-Length": 0 }).end();
}

function briefAnswer(status: string): string {
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n`;
}

/**
 * Idle kept connections end at once; a busy one is idle after its answer, and ends at the next sweep. The listening socket
 * closes first, which Node's own `close` of an HTTP server does last: whoever sees an idle connection end and connects
 * anew is then refused, and can go elsewhere, instead of being accepted by the kernel and reset.
 */
function closeServer(server: Server, { latest, owner }: Connections, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const silentUntil = performance.now() + Math.min(SILENT_AT_STOP_MS, timeoutMs);
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      owner?.endIdle();
      // Node does not call a connection idle that has sent nothing so far, or a part of a request.
      if (performance.now() < silentUntil) return;
      for (const [socket, response] of latest) if (!isPending(response) && !owner?.isPending(socket)) socket.destroy();
    }, 50);
    const force = setTimeout(() => {
      for (const socket of latest.keys()) socket.destroy();
    }, timeoutMs);
    NetServer.prototype.close.call(server, () => {
      clearInterval(sweep);
      clearTimeout(force);
      resolve();
    });
    // Ends the idle connections, and the timer that checks for slow requests.
    server.close();
    owner?.endIdle();
  });
}
