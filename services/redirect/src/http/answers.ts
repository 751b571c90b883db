// Every answer but the redirect itself. All of them say `no-store`: 404, 405 and 410 may be kept by any cache that was
// not told otherwise (RFC 9110 section 15.1), and then a new link stays unknown and a page about a revoked one lives on.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type PageContent, pageHtml } from "./pages.ts";

/** Seconds until another try is worth it: above a query's deadline. */
const RETRY_AFTER = "2";

type Answer = { status: number; headers?: Record<string, string>; page: PageContent };

const NOT_FOUND: Answer = {
  status: 404,
  page: { title: "No such link", text: "There is no link with this address. Check it letter by letter: case matters." },
};
const GONE: Answer = {
  status: 410,
  page: { title: "This link is gone", text: "The link was taken back by its owner, or its time is over." },
};
const METHOD_NOT_ALLOWED: Answer = {
  status: 405,
  headers: { Allow: "GET, HEAD" },
  page: { title: "Method not allowed", text: "Links are followed with GET or HEAD." },
};
const UNAVAILABLE: Answer = {
  status: 503,
  headers: { "Retry-After": RETRY_AFTER },
  page: { title: "Try again in a moment", text: "This link cannot be looked up right now." },
};
const BAD_REQUEST: Answer = {
  status: 400,
  page: { title: "Bad request", text: "The request has no path of its own, or not one Host." },
};

/** A person's browser asks for HTML; everything else gets one line. */
function send(request: IncomingMessage, response: ServerResponse, { status, headers, page }: Answer): void {
  const html = request.headers.accept?.includes("text/html") ?? false;
  const body = html ? pageHtml(page) : `${page.plain ?? `${status} ${page.title}. ${page.text}`}\n`;
  response.writeHead(status, {
    ...headers,
    "Cache-Control": "no-store",
    "Content-Type": html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    Vary: "Accept",
  });
  response.end(body);
}

export const sendNotFound = (request: IncomingMessage, response: ServerResponse) => send(request, response, NOT_FOUND);
export const sendGone = (request: IncomingMessage, response: ServerResponse) => send(request, response, GONE);
export const sendMethodNotAllowed = (request: IncomingMessage, response: ServerResponse) =>
  send(request, response, METHOD_NOT_ALLOWED);
export const sendUnavailable = (request: IncomingMessage, response: ServerResponse) =>
  send(request, response, UNAVAILABLE);
export const sendBadRequest = (request: IncomingMessage, response: ServerResponse) =>
  send(request, response, BAD_REQUEST);

/** Shows where a link leads without going there: as a page, or as the bare target. */
export function sendPreview(request: IncomingMessage, response: ServerResponse, target: string): void {
  const page = { title: "Where this link leads", text: "It has not been followed yet.", target, plain: target };
  send(request, response, { status: 200, page });
}
