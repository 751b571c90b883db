import { IncomingMessage, ServerResponse } from "node:http";
import express, { type Express, type NextFunction } from "express";
import { resolve } from "./domain/entry.ts";
import { askedFor } from "./domain/path.ts";
import { sendLinkPage, sendPreview } from "./http/answers.ts";
import type { HotPath } from "./http/hot-path.ts";

/** Crawlers are asked to stay away: each request of theirs would be one more click that nobody made. */
const ROBOTS = "User-agent: *\nDisallow: /\n";

export type AppDeps = {
  hotPath: Pick<HotPath, "serve" | "readThrough">;
  /** Told about an error that no handler expected. */
  onError: (error: unknown) => void;
};

/** Everything that is not plainly a link: previews, escaped codes, the two files that browsers and crawlers ask for. */
export function createApp({ hotPath, onError }: AppDeps): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  // Express gives each request and response the prototype that stands here, which makes every later access to them slow. Of what
  // it would add, nothing is needed; and a server that made them with Express's prototypes would make each redirect slower.
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });

  async function preview(request: IncomingMessage, response: ServerResponse, code: string): Promise<void> {
    const found = await hotPath.readThrough(code).catch(() => null);
    if (response.destroyed || response.headersSent) return;
    if (!found) return sendLinkPage(request, response, "unavailable");
    const outcome = resolve(found.entry, found.at.mono);
    if (outcome === "redirect") sendPreview(request, response, found.entry.target);
    else sendLinkPage(request, response, outcome);
  }

  app.use(async (request: IncomingMessage, response: ServerResponse) => {
    const asked = askedFor(request.url ?? "");
    if (asked.kind === "code") hotPath.serve(request, response, asked.code);
    else if (asked.kind === "preview") await preview(request, response, asked.code);
    else if (asked.kind === "file" && asked.name === "robots.txt") {
      response.setHeader("Cache-Control", "no-store");
      response.setHeader("Content-Type", "text/plain; charset=utf-8");
      response.end(ROBOTS);
    } else sendLinkPage(request, response, "not-found");
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, request: IncomingMessage, response: ServerResponse, _next: NextFunction) => {
    onError(error);
    if (!response.headersSent) sendLinkPage(request, response, "unavailable");
    else response.destroy();
  });
  return app;
}
