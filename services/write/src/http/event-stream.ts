import type { Request } from "express";

/** Media type of server-sent events (WHATWG HTML, section 9.2). */
export const EVENT_STREAM = "text/event-stream";
/** The last one keeps nginx, and what imitates it, from collecting the stream before it passes it on. */
export const STREAM_FIELDS = { "Content-Type": EVENT_STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no" };

/** Says that a stream is all that the caller takes, as a browser's EventSource does. */
export function takesStreamAlone(request: Request): boolean {
  return request.accepts("application/json") === false && request.accepts(EVENT_STREAM) !== false;
}

/** Of two that it likes the same, a caller gets what it names first; who says nothing, or likes neither, gets JSON. */
export function prefersStream(request: Request): boolean {
  return request.accepts(["application/json", EVENT_STREAM]) === EVENT_STREAM;
}
