// Ends the connections of a worker that has a successor, so that no request is sent into one that is being closed: each is
// told with its next answer that it ends, and its client comes back on a new one, which the successor gets.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { ConnectionOwner, RunningServer } from "@linkfence/service-shell";

/** A client that sends nothing for so long has nobody waiting; the usual stop then closes its connection. */
export const SILENT_MS = 3000;

/** Has Node answer on all connections, and takes no new ones. Resolves when all have ended, or only silent ones are left. */
export async function letConnectionsEnd(
  { server }: Pick<RunningServer, "server">,
  owner: Pick<ConnectionOwner, "passOn">,
): Promise<void> {
  const sayGoodbye = (_request: IncomingMessage, response: ServerResponse) => response.setHeader("Connection", "close");
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, sayGoodbye);
  owner.passOn();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, SILENT_MS);
    // The listening socket alone: an HTTP server's own `close` ends idle connections.
    NetServer.prototype.close.call(server, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
