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

/** A page as it is sent: `headers` in their order, and a body in ASCII or, where it shows a target, in UTF-8. */
export type Rendered = { status: number; headers: Record<string, string | number>; body: string };

function render({ status, headers, page }: Answer, html: boolean): Rendered {
  const body = html ? pageHtml(page) : `${page.plain ?? `${status} ${page.title}. ${page.text}`}\n`;
  return {
    status,
    headers: {
      ...headers,
      "Cache-Control": "no-store",
      "Content-Type": html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
      "Content-Length": Buffer.byteLength(body),
      "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      Vary: "Accept",
    },
    body,
  };
}

/**
 * A person's browser asks for HTML; everything else gets one line.
 * @param rawHeaders names and values of the fields, in turn, as Node gives them
 */
export function wantsHtml(rawHeaders: readonly string[]): boolean {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 6 && name.toLowerCase() === "accept" && rawHeaders[index + 1]?.includes("text/html"))
      return true;
  }
  return false;
}

/** What a link is answered with that leads nowhere, or nowhere now. */
export type LinkPage = "not-found" | "gone" | "unavailable";
const LINK_PAGES: Record<LinkPage, Answer> = { "not-found": NOT_FOUND, gone: GONE, unavailable: UNAVAILABLE };

/** Makes such a page for whoever writes it to a connection himself. */
export const renderLinkPage = (page: LinkPage, html: boolean): Rendered => render(LINK_PAGES[page], html);

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const { status, headers, body } = render(answer, wantsHtml(request.rawHeaders));
  response.writeHead(status, headers);
  response.end(body);
}

export const sendLinkPage = (request: IncomingMessage, response: ServerResponse, page: LinkPage) =>
  send(request, response, LINK_PAGES[page]);
export const sendMethodNotAllowed = (request: IncomingMessage, response: ServerResponse) =>
  send(request, response, METHOD_NOT_ALLOWED);
export const sendBadRequest = (request: IncomingMessage, response: ServerResponse) =>
  send(request, response, BAD_REQUEST);

/** Shows where a link leads without going there: as a page, or as the bare target. */
export function sendPreview(request: IncomingMessage, response: ServerResponse, target: string): void {
  const page = { title: "Where this link leads", text: "It has not been followed yet.", target, plain: target };
  send(request, response, { status: 200, page });
}
