// A real browser with a profile of its own: memory cache, disk cache and history, as a visitor has them.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { programPath } from "./programs.ts";

const FLAGS = [
  "--headless",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Only addresses of this machine, whatever it may want to ask by itself.
  "--no-proxy-server",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];
/** Chromium refuses to run as root with its sandbox; it is shown nothing here but pages of our own. */
const SANDBOX_FLAGS = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
/** Starting takes a second or two on an idle machine. */
const START_TIMEOUT_MS = 60_000;

/** Where a visitor ended up. */
export type Arrival = { url: string; status: number };
export type Browser = Awaited<ReturnType<typeof startBrowser>>;

/** Starts Chromium, headless, with an empty profile. Every visit is made in its one tab. */
export async function startBrowser() {
  const home = await mkdtemp(join(tmpdir(), "linkfence-browser-"));
  let context = await launch(home);
  let page = await onlyTab(context);

  /** What the tab shows once an act that leads to another page has done so. */
  async function arrive(act: () => Promise<unknown>): Promise<Arrival> {
    // The answer that a page is made of; those that led on to another address are not.
    const answered = page.waitForResponse(
      (response) => response.request().isNavigationRequest() && !isRedirect(response.status()),
    );
    const shown = page.waitForEvent("framenavigated");
    await Promise.all([answered, shown, act()]);
    await page.waitForLoadState("load");
    return { url: page.url(), status: (await answered).status() };
  }

  return {
    version: () => context.browser()?.version() ?? "unknown",
    /** The tab as it is now, for a look at what it shows. */
    tab: (): Page => page,
    /** Visits an address as if it had been typed. */
    type: (url: string) => arrive(() => page.goto(url)),
    /** Clicks on the only link of the page that is shown. */
    click: () => arrive(() => page.click("a")),
    /** Goes back in the tab's history. */
    async back(): Promise<void> {
      await page.goBack();
    },
    /** Closes the browser and starts it again with the same profile. */
    async restart(): Promise<void> {
      await context.close();
      context = await launch(home);
      page = await onlyTab(context);
    },
    async close(): Promise<void> {
      await context.close();
      await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** The library is loaded by whoever starts a browser, and by nobody else. */
async function launch(home: string): Promise<BrowserContext> {
  const { chromium } = await import("playwright-core");
  return chromium.launchPersistentContext(join(home, "profile"), {
    executablePath: programPath("chromium"),
    args: [...FLAGS, ...SANDBOX_FLAGS],
    chromiumSandbox: SANDBOX_FLAGS.length === 0,
    env: { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: home },
    timeout: START_TIMEOUT_MS,
    // Whoever breaks a run off decides what is cleaned up; at the end of the process the browser is ended as well.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}

async function onlyTab(context: BrowserContext): Promise<Page> {
  return context.pages()[0] ?? (await context.newPage());
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}
