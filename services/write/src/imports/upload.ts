// The body of a request, piece by piece, as slow as its reader wants it. Who sends must go on sending: the time that is
// spent waiting for the client is limited, and grows only with the bytes that came. Time that the database takes is ours.
import { Problem } from "@linkfence/contracts";
import { allowLongUpload } from "@linkfence/service-shell";
import type { Request } from "express";

/** A pause of a person's network is over by then, or the connection is dead. */
const PATIENCE_MS = 15_000;
/** Less than this, over time, is no upload but a way to hold a connection. Bytes in a millisecond: a kilobyte a second. */
const SLOWEST_RATE = 1;
/** Time for the client to read an answer that came before its last byte was sent. */
const LINGER_MS = 5000;

/** Why a body did not come to its end without anybody having been refused anything. */
export class UploadBroken extends Error {
  readonly why: "client-gone" | "stopping";

  constructor(why: "client-gone" | "stopping") {
    super(why);
    this.name = "UploadBroken";
    this.why = why;
  }
}

export type UploadOptions = {
  /** Bytes at the most. */
  maxBytes: number;
  /** Ends the reading between two pieces. */
  stopping: AbortSignal;
  /** Time to wait for the client, in ms; tests are less patient. */
  patienceMs?: number;
};

export type Upload = ReturnType<typeof openUpload>;

/** Opens the body of a request; `end` must be called in any case. */
export function openUpload(request: Request, { maxBytes, stopping, patienceMs = PATIENCE_MS }: UploadOptions) {
  const pieces: Buffer[] = [];
  let received = 0;
  let patience = patienceMs;
  let wake = () => {};

  const take = (piece: Buffer) => {
    pieces.push(piece);
    received += piece.length;
    request.pause();
    wake();
  };
  const look = () => wake();
  const { socket } = request;
  /** Node tells a request whose client only ended its side of the connection nothing, as long as there is no answer. */
  const isGone = () => request.destroyed || (socket.readableEnded && !request.complete && request.readableLength === 0);
  allowLongUpload(request);
  request.pause().on("data", take).on("end", look).on("close", look).on("error", look);
  socket.on("end", look);
  stopping.addEventListener("abort", look);

  /** Waits until something has happened, or the client has used up its time. */
  async function somethingNew(): Promise<void> {
    const startedAt = performance.now();
    const before = received;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, patience);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      request.resume();
    });
    const waited = performance.now() - startedAt;
    patience = Math.min(patienceMs, patience - waited + (received - before) / SLOWEST_RATE);
  }

  /**
   * The next piece, or null behind the last one.
   * @throws Problem 413 beyond the limit, 408 when the client sends too slowly; `UploadBroken`
   */
  async function next(): Promise<Buffer | null> {
    for (;;) {
      if (stopping.aborted) throw new UploadBroken("stopping");
      if (received > maxBytes)
        throw new Problem("payload-too-large", `a file may have ${maxBytes} bytes at the most: send it in parts`);
      const piece = pieces.shift();
      if (piece) return piece;
      if (request.readableEnded) return null;
      if (isGone()) throw new UploadBroken("client-gone");
      if (patience <= 0) throw new Problem("upload-stalled", "the file came too slowly, or no further");
      await somethingNew();
    }
  }

  /** What is still on its way is thrown away for a while, so that the client gets to see the answer. */
  function end(): void {
    request.off("data", take).off("end", look).off("close", look).off("error", look);
    socket.off("end", look);
    stopping.removeEventListener("abort", look);
    if (request.complete || request.destroyed) return;
    const timer = setTimeout(() => request.complete || socket.destroy(), LINGER_MS);
    // Of the socket, since a request that was answered before its end is not told of its own.
    socket.once("close", () => clearTimeout(timer));
    request.on("error", () => {}).resume();
  }

  return { next, end };
}
