import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { errorCode } from "./local-postgres-error.ts";

const LOOPBACK = "127.0.0.1";

/** @returns a loopback port nobody listens on. Somebody may take it before it is used: be ready to ask again. */
export async function findFreePort(): Promise<number> {
  const server = await listen(0);
  const { port } = server.address() as AddressInfo;
  await closed(server);
  return port;
}

/** @returns false when another process listens on the loopback port */
export async function isPortFree(port: number): Promise<boolean> {
  try {
    await closed(await listen(port));
    return true;
  } catch (error) {
    // Any other refusal, e.g. EACCES below 1024, is for the server to explain: it runs as somebody else.
    return errorCode(error) !== "EADDRINUSE";
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer();
  server.listen({ port, host: LOOPBACK, exclusive: true });
  await once(server, "listening");
  return server;
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}
