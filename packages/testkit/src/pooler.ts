import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * `deaf` swallows every notification, as a pooler in transaction mode does: LISTEN was accepted on a server connection
 * that is somebody else's by now. `mute-at-notify` falls silent for good when the client first sends a NOTIFY.
 */
export type PoolerMode = "pass" | "deaf" | "mute-at-notify";

/** NotificationResponse (PostgreSQL manual, section 55.7). */
const NOTIFICATION = "A".charCodeAt(0);
/** DataRow, CommandComplete and ReadyForQuery: what an answer consists of, once its statement was understood. */
const ANSWER = new Set([..."DCZ"].map((type) => type.charCodeAt(0)));

export type Pooler = {
  /** Takes effect at once, on open connections too. */
  set(mode: PoolerMode): void;
  /**
   * Lets the next statement whose text has `part` through to the server, and nothing of its answer back, nor anything
   * that comes after it on that connection: the client never hears of a commit that happened. Statements that a connection
   * has sent before go by a name, and are not recognised.
   */
  withhold(part: string): void;
  /** The URL with host and port replaced by the pooler's. */
  through(url: string): string;
  close(): Promise<void>;
};

/**
 * Starts a proxy on loopback that reads the server's messages, to let through what a pooler would.
 * @param serverPort the server's port on loopback
 */
export async function startPooler(serverPort: number): Promise<Pooler> {
  let mode: PoolerMode = "pass";
  let withheld: string | undefined;
  const sockets = new Set<Socket>();

  const listener = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    let mute = false;
    let withholding = false;
    let rest: Buffer = Buffer.alloc(0);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on("data", (chunk) => {
      if (mode === "mute-at-notify" && chunk.includes("NOTIFY")) mute = true;
      if (withheld !== undefined && chunk.includes(withheld)) {
        withholding = true;
        withheld = undefined;
      }
      if (!mute) server.write(chunk);
    });
    server.on("data", (chunk) => {
      const { messages, left } = splitMessages(Buffer.concat([rest, chunk]));
      rest = left;
      for (const message of messages) {
        const type = message[0] ?? 0;
        if (withholding && ANSWER.has(type)) continue;
        if (!mute && !(mode === "deaf" && type === NOTIFICATION)) client.write(message);
      }
    });
  });

  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  return {
    set(next) {
      mode = next;
    },
    withhold(part) {
      withheld = part;
    },
    through(url) {
      const changed = new URL(url);
      changed.host = `127.0.0.1:${port}`;
      return changed.href;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => listener.close(() => resolve()));
    },
  };
}

/** Each message of the server is one byte of type, then its length in four bytes, which count themselves. */
function splitMessages(bytes: Buffer): { messages: Buffer[]; left: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (at + 5 <= bytes.length) {
    const end = at + 1 + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) break;
    messages.push(bytes.subarray(at, end));
    at = end;
  }
  return { messages, left: bytes.subarray(at) };
}
