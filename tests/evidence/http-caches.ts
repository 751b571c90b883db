// What browsers and proxies keep of an answer, seen from outside: a real browser, and nginx that keeps what it may.
import { createHttpClient, type HttpClient } from "@linkfence/testkit";
import { type Arrival, type Browser, startBrowser } from "./browser.ts";
import { type CachingProxy, startCachingProxy } from "./caching-proxy.ts";
import { closingAfterwards } from "./closing.ts";
import { type LandingPages, startLandingPages } from "./landing-pages.ts";
import { missingPrograms } from "./programs.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { type Shortener, startLinkfence, startSilentShortener } from "./shorteners.ts";

const OLD = "the old target";

/** Where each way of following a link led: to the old target, or to a page with this status. */
type Visits = Record<string, typeof OLD | number>;
type Scene = { shortener: Shortener; proxy: CachingProxy; pages: LandingPages; browser: Browser; http: HttpClient };

export const h1: EvidenceCase = {
  id: "H1",
  shows: "neither a browser nor a caching proxy keeps where a revoked link led, or that a new one was unknown",
  missing: () => missingPrograms("chromium", "nginx"),
  async run(report) {
    const seen = await observe(report, startLinkfence);
    report.check("before the revocation", seen.before, allOf(seen.before, OLD));
    report.check("after it", seen.after, allOf(seen.after, 410));
    report.check("somebody else, twice, through the proxy", seen.others, ["MISS 410", "MISS 410"]);
    report.check("a link asked for through the proxy before it was created, and after", seen.early, [404, 302]);
    report.figure(`${Object.keys(seen.after).length} ways of following a revoked link: 410 on each`);
  },
};

export const h1c: EvidenceCase = {
  id: "H1c",
  shows: "a 301 that says nothing about caching is kept by both, and leads to the old target after the revocation",
  control: true,
  missing: () => missingPrograms("chromium", "nginx"),
  async run(report) {
    const seen = await observe(report, startSilentShortener);
    report.check("before the revocation", seen.before, allOf(seen.before, OLD));
    report.check("after it", seen.after, allOf(seen.after, OLD));
    report.check("somebody else, twice, through the proxy", seen.others, ["HIT 301", "HIT 301"]);
    report.check("a link asked for through the proxy before it was created, and after", seen.early, [404, 404]);
    report.figure(`${Object.keys(seen.after).length} ways of following a revoked link: the old target on each`);
  },
};

/** The scenario: a link followed without the proxy and one through it, each revoked, and followed again. */
async function observe(report: Report, start: () => Promise<Shortener>) {
  return closingAfterwards(async (later) => {
    const http = createHttpClient();
    later(http.close);
    const pages = await startLandingPages();
    later(pages.close);
    const shortener = await start();
    later(shortener.stop);
    const proxy = await startCachingProxy(shortener.url);
    later(proxy.stop);
    const browser = await startBrowser();
    later(browser.close);
    report.note(`Chromium ${browser.version()}, ${proxy.version}`);
    const scene = { shortener, proxy, pages, browser, http };
    const early = await askTooEarly(scene, "early");
    const direct = await followRevokeFollow(scene, "direct", shortener.url);
    const proxied = await followRevokeFollow(scene, "proxied", proxy.url);
    const others = [await askByProxy(scene, "proxied"), await askByProxy(scene, "proxied")];
    const before = { ...direct.before, ...proxied.before };
    return { before, after: { ...direct.after, ...proxied.after }, others, early };
  });
}

/** In one profile: typed, clicked, gone back; revoked; clicked, typed, and typed once more after the browser's restart. */
async function followRevokeFollow({ shortener, pages, browser }: Scene, code: string, base: string) {
  const link = `${base}/${code}`;
  const target = `${pages.url}/${code}`;
  const ledTo = ({ url, status }: Arrival) => (url === target ? OLD : status);
  await shortener.create(code, target);
  const before: Visits = { [`${code}, typed`]: ledTo(await browser.type(link)) };
  await browser.type(pages.pageWithLink(link));
  before[`${code}, clicked`] = ledTo(await browser.click());
  await browser.back();
  await shortener.revoke(code);
  const after: Visits = {
    [`${code}, clicked after going back`]: ledTo(await browser.click()),
    [`${code}, typed`]: ledTo(await browser.type(link)),
  };
  await browser.restart();
  after[`${code}, typed after a restart of the browser`] = ledTo(await browser.type(link));
  return { before, after };
}

/** The statuses that the proxy answers to a code that is not there yet, and to the same one once it is. */
async function askTooEarly({ shortener, proxy, pages, http }: Scene, code: string): Promise<number[]> {
  const before = await http.send(proxy.url, `/${code}`);
  await shortener.create(code, `${pages.url}/${code}`);
  const after = await http.send(proxy.url, `/${code}`);
  return [before.status, after.status];
}

/** What somebody else gets through the proxy: where it has the answer from (`HIT`: its cache), and the status. */
async function askByProxy({ proxy, http }: Scene, code: string): Promise<string> {
  const { status, headers } = await http.send(proxy.url, `/${code}`);
  return `${headers["x-cache-status"]} ${status}`;
}

function allOf(visits: Visits, what: Visits[string]): Visits {
  return Object.fromEntries(Object.keys(visits).map((way) => [way, what]));
}
