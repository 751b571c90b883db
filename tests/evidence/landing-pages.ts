import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type LandingPages = Awaited<ReturnType<typeof startLandingPages>>;

/** Starts a site on loopback for links to lead to: every address is a page. It never lets a page be kept. */
export async function startLandingPages() {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://127.0.0.1");
    if (pathname !== "/favicon.ico") paths.push(request.url ?? "");
    const link = searchParams.get("link");
    const body = link === null ? "<p>Here it is.</p>" : `<p><a href="${link}">Follow me.</a></p>`;
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.setHeader("Cache-Control", "no-store");
    response.end(`<!doctype html><title>A page</title>${body}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    /** Address of a page with one link. */
    pageWithLink: (link: string) => `${url}/links?link=${encodeURIComponent(link)}`,
    /** The paths asked for, as they came in. */
    asked: (): readonly string[] => paths,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
