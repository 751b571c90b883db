import { isIP } from "node:net";
import type { Request } from "express";

/**
 * The address of who calls: that of the connection, or the one that trusted proxies tell (Express' setting `trust proxy`).
 * A proxy that tells something else than an address stands for its callers itself.
 */
export function clientAddress(request: Request): string {
  const { ip = "", socket } = request;
  return isIP(ip) === 0 ? (socket.remoteAddress ?? "unknown") : ip;
}
