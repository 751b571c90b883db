// One start at a time per data directory, from looking at it until the server has announced itself: nobody may judge or
// clear remains that another start is about to replace. The lock is a listening socket in Linux's abstract namespace
// (unix(7)): it has no file, and the kernel drops it with its process, so a kill -9 releases it. Elsewhere there is no
// such thing, and PostgreSQL's own interlock alone decides who wins; a start that lost may then name no owner.
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { errorCode, LocalPostgresError } from "./local-postgres-error.ts";

/**
 * Runs `act` while no other process does so for the same directory.
 * @param directory exists; recognised by device and inode, under every path
 * @throws LocalPostgresError `data-dir-in-use` when another start does not end within `waitMs`
 */
export async function withStartLock<T>(directory: string, waitMs: number, act: () => Promise<T>): Promise<T> {
  const lock = process.platform === "linux" ? await acquire(directory, waitMs) : undefined;
  try {
    return await act();
  } finally {
    lock?.close();
  }
}

async function acquire(directory: string, waitMs: number): Promise<Server | undefined> {
  const { dev, ino } = await stat(directory, { bigint: true });
  for (const end = performance.now() + waitMs; performance.now() < end; ) {
    const server = createServer((socket) => socket.destroy());
    server.listen({ path: `\0linkfence-postgres-start:${dev}:${ino}`, exclusive: true });
    try {
      await once(server, "listening");
      return server;
    } catch (error) {
      if (errorCode(error) !== "EADDRINUSE") {
        return undefined; // forbidden here: as on systems without such sockets
      }
    }
    await pause(50); // nobody tells when a name becomes free
  }
  throw new LocalPostgresError(
    "data-dir-in-use",
    `Another start command has been starting on ${directory} for ${waitMs} ms. Wait for it or stop it, or set ` +
      "LINKFENCE_DATA_DIR to another directory.",
  );
}
