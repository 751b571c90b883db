import type { IncomingMessage, ServerResponse } from "node:http";
import { type LinkPage, sendLinkPage } from "./answers.ts";
import type { Asker } from "./hot-path.ts";

/** Who asks by a request that Node's server has read. */
export const askerOf = (request: IncomingMessage, response: ServerResponse): Asker => new NodeAsker(request, response);

/** A class, so that there are no functions to be made for each request. */
class NodeAsker implements Asker {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  get clicks(): boolean {
    return this.#request.method === "GET";
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  get address(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  /** Also where it was answered by the server for what came behind the head of the request, or has closed its half. */
  isOver(): boolean {
    return this.#response.destroyed || this.#response.headersSent || !this.#request.socket.writable;
  }

  redirect(target: string, ageMs: number | null): void {
    // In the order, and the letters, of `plain-connections.ts`.
    this.#response.writeHead(
      302,
      ageMs === null
        ? { Location: target, "Cache-Control": "no-store", "Content-Length": "0" }
        : { Location: target, "Cache-Control": "no-store", "Content-Length": "0", "X-Entry-Age-Ms": ageMs.toFixed(3) },
    );
    this.#response.end();
  }

  show(page: LinkPage): void {
    sendLinkPage(this.#request, this.#response, page);
  }
}
