import type { IncomingMessage } from "node:http";

const patient = new WeakSet<IncomingMessage>();

/**
 * Excepts one request from the time that a server allows for the body. Its handler promises to end the request itself when
 * nothing, or too little, comes: else anybody could hold a connection for ever.
 */
export function allowLongUpload(request: IncomingMessage): void {
  patient.add(request);
}

export function isLongUpload(request: IncomingMessage): boolean {
  return patient.has(request);
}
