// Answers plain requests for links straight on their connections, without Node's HTTP: of what a redirect costs, more than half
// is the objects that Node makes for any request and any response. The bytes are those that Node would have sent. With the
// first request that is not plain a connection is Node's for good.
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { ConnectionOwner, PassOn } from "@linkfence/service-shell";
import { type LinkPage, renderLinkPage, wantsHtml } from "./answers.ts";
import type { Asker } from "./hot-path.ts";
import { createPlainReader, type PlainReader } from "./plain-request.ts";

export type PlainConnectionsDeps = {
  /** Answers who asks for a link: at once, or when the database has answered. */
  follow: (asker: Asker, code: string) => void;
  /** Names of further header fields that are wanted of a request. */
  fields: readonly string[];
  /** Idle connections end after this time, which is told to their clients. */
  keepAliveMs: number;
  /** Reads a request; `createPlainReader` where nothing else is given. */
  read?: PlainReader;
};

export type PlainConnections = ReturnType<typeof createPlainConnections>;

/** Who says nothing at first is Node's, which has deadlines for that. */
const FIRST_WORD_MS = 1000;
/** Who reads no answer for so long is cut off, as by the server. */
const STALLED_MS = 30_000;

type Connection = Asker & {
  /** Gives it to Node, with what was read and not used. */
  passOn(unread: Buffer | null): void;
  /** Being answered, or its answer is still to be read by the other side. */
  isPending(): boolean;
  hasAsked(): boolean;
};

/** Creates the owner of new connections. */
export function createPlainConnections(deps: PlainConnectionsDeps) {
  const { follow, keepAliveMs, read = createPlainReader(deps.fields) } = deps;
  const connections = new Map<unknown, Connection>();
  const tail = createTail(keepAliveMs);
  let passesAll = false;
  let passedOn = 0;

  function own(socket: Socket, passOn: PassOn): void {
    if (passesAll) {
      passedOn += 1;
      passOn(null);
      return;
    }
    let rawHeaders: readonly string[] = [];
    let asked = false;
    let answering = false;
    let undrained = false;
    /** What came while a request was being answered. */
    let held: Buffer | null = null;

    const connection: Connection = {
      clicks: true,
      get rawHeaders() {
        return rawHeaders;
      },
      get address() {
        return socket.remoteAddress;
      },
      // Also if it has closed its half: for Node, too, that is the end.
      isOver: () => !socket.writable,
      redirect: (target, ageMs, wall) => answer(redirectHead(target, ageMs) + tail(wall)),
      show: (page, wall) => answer(pageText(page, wantsHtml(rawHeaders), tail(wall))),
      isPending: () => answering || undrained,
      hasAsked: () => asked,
      passOn(unread) {
        socket
          .off("data", onData)
          .off("end", onEnd)
          .off("timeout", onTimeout)
          .off("error", onError)
          .off("close", onClose);
        connections.delete(socket);
        passedOn += 1;
        passOn(unread);
      },
    };

    function answer(text: string): void {
      socket.write(text, "latin1");
      answering = false;
      if (held !== null || passesAll) {
        const unread = held;
        held = null;
        connection.passOn(unread);
      } else if (socket.writableLength > 0) waitUntilRead();
    }

    /** Nothing more is read of who does not read what it is sent. */
    function waitUntilRead(): void {
      undrained = true;
      socket.pause().setTimeout(STALLED_MS);
      // Called when all that was written before has been taken.
      socket.write("", () => {
        undrained = false;
        if (socket.destroyed) return;
        if (passesAll) connection.passOn(null);
        else socket.setTimeout(keepAliveMs).resume();
      });
    }

    function onData(chunk: Buffer): void {
      if (answering) {
        socket.pause();
        held = held === null ? chunk : Buffer.concat([held, chunk]);
        return;
      }
      const request = read(chunk);
      if (request === null) {
        connection.passOn(chunk);
        return;
      }
      if (!asked) {
        asked = true;
        socket.setTimeout(keepAliveMs);
      }
      rawHeaders = request.rawHeaders;
      answering = true;
      follow(connection, request.code);
    }

    const onEnd = () => void socket.end();
    // Node ends a connection for an error without a word, too.
    const onError = () => void socket.destroy();
    const onClose = () => void connections.delete(socket);
    const onTimeout = () => {
      if (asked) socket.destroy();
      else connection.passOn(null);
    };

    connections.set(socket, connection);
    socket.on("data", onData).on("end", onEnd).on("timeout", onTimeout).on("error", onError).on("close", onClose);
    socket.setTimeout(FIRST_WORD_MS);
  }

  const owner: ConnectionOwner = {
    own,
    isPending: (socket) => connections.get(socket)?.isPending() ?? false,
    passOn() {
      passesAll = true;
      for (const connection of [...connections.values()]) if (!connection.isPending()) connection.passOn(null);
    },
    endIdle() {
      for (const [socket, connection] of connections)
        if (connection.hasAsked() && !connection.isPending()) (socket as Socket).destroy();
    },
  };
  return { ...owner, stats: () => ({ open: connections.size, passedOn }) };
}

function redirectHead(target: string, ageMs: number | null): string {
  const head = `HTTP/1.1 302 ${STATUS_CODES[302]}\r\nLocation: ${target}\r\nCache-Control: no-store\r\nContent-Length: 0\r\n`;
  return ageMs === null ? head : `${head}X-Entry-Age-Ms: ${ageMs.toFixed(3)}\r\n`;
}

function pageText(page: LinkPage, html: boolean, tail: string): string {
  const { status, headers, body } = renderLinkPage(page, html);
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join("")}${tail}${body}`;
}

/** Creates what ends the header block of each answer: its fields are those that Node adds, made anew once a second. */
function createTail(keepAliveMs: number): (wall: number) => string {
  const kept = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n\r\n`;
  let second = Number.NaN;
  let text = "";
  return (wall) => {
    const now = Math.floor(wall / 1000);
    if (now !== second) {
      second = now;
      text = `Date: ${new Date(now * 1000).toUTCString()}\r\n${kept}`;
    }
    return text;
  };
}
