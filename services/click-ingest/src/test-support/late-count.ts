import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** CopyDone, and the tag of CommandComplete behind it (PostgreSQL manual, section 55.7). */
const COPY_DONE = Buffer.from("c\0\0\0\u0004", "latin1");
const COUNT_FOLLOWS = Buffer.concat([COPY_DONE, Buffer.from("C")]);
/** As long as a packet takes that is sent once more. */
const LATE_MS = 200;

/** A line to a server on loopback on which the end of a COPY comes, and a while later how many rows those were. */
export async function openLateCount(databaseUrl: string) {
  const url = new URL(databaseUrl);
  const serverPort = Number(url.port);
  const sockets: Socket[] = [];
  let heldBack = 0;
  const listener = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    for (const socket of [client, server]) socket.on("error", () => {});
    sockets.push(client, server);
    client.pipe(server);
    let before = Promise.resolve<unknown>(undefined);
    server.on("data", (chunk: Buffer) => {
      const at = chunk.indexOf(COUNT_FOLLOWS);
      const [now, later] =
        at < 0 ? [chunk, undefined] : [chunk.subarray(0, at + COPY_DONE.length), chunk.subarray(at + COPY_DONE.length)];
      before = before.then(() => client.write(now));
      if (later === undefined) return;
      heldBack += 1;
      before = before.then(() => pause(LATE_MS)).then(() => client.write(later));
    });
    server.on("end", () => void before.then(() => client.end()));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  url.hostname = "127.0.0.1";
  url.port = String(port);
  return {
    url: url.href,
    heldBack: () => heldBack,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
