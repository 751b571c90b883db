// The page that describes the admin API, in a real browser that can reach no other machine.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type RunningService,
  readDocument,
  sendChecked,
  startService,
  type TestDatabase,
  waitUntilReady,
} from "@linkfence/testkit";
import { type Browser, startBrowser } from "../evidence/browser.ts";
import { missingPrograms } from "../evidence/programs.ts";

const missing = await missingPrograms("chromium");
const inBrowser = missing === null ? test : test.skip;
const reason = missing === null ? "" : ` (skipped: ${missing})`;
/** Two megabytes of script are compiled, on a machine that may be busy. */
const SHOWN_MS = 60_000;

const http = createHttpClient();
let database: TestDatabase;
let write: RunningService;
let browser: Browser | undefined;
beforeAll(async () => {
  database = await createTestDatabase("main");
  write = await startService("write", { DATABASE_URL: database.url });
  await waitUntilReady(write);
  if (missing === null) browser = await startBrowser();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  http.close();
  await write.stop();
  await database.drop();
});

/** Opens the page, and waits until it shows operations. */
async function openPage() {
  const tab = browser?.tab();
  if (!tab) throw new Error("no browser");
  const asked: string[] = [];
  const complaints: string[] = [];
  tab.on("request", (request) => void asked.push(request.url()));
  tab.on("console", (message) => void (message.type() === "error" && complaints.push(message.text())));
  tab.on("pageerror", (error) => void complaints.push(String(error)));
  await tab.goto(`${write.url}/docs`);
  await tab.waitForSelector(".opblock", { timeout: SHOWN_MS });
  tab.removeAllListeners();
  return { tab, asked, complaints };
}

/** What the page asked other places for; data URLs are a part of the page itself. */
const elsewhere = (asked: readonly string[]) =>
  asked.filter((url) => !url.startsWith("data:") && new URL(url).origin !== write.url);

inBrowser(
  `the page shows every operation, asks nobody else for anything, and breaks none of its own rules${reason}`,
  async () => {
    const { tab, asked, complaints } = await openPage();
    const shown = await tab.locator(".opblock-summary-path").evaluateAll((all) => all.map((one) => one.textContent));
    const plain = shown.map((path) => path?.replaceAll(/[\u200b\s]/g, ""));
    const documented = Object.entries(readDocument().paths).flatMap(([path, item]) =>
      Object.keys(item).map(() => path),
    );
    expect(plain.sort()).toEqual(documented.sort());
    expect(asked.map((url) => url.slice(write.url.length))).toContain("/openapi.json");
    expect(elsewhere(asked)).toEqual([]);
    expect(complaints).toEqual([]);
  },
  SHOWN_MS * 2,
);

inBrowser(
  `the page's rules hold: it can neither ask another place nor run a script that stands in it${reason}`,
  async () => {
    const { tab } = await openPage();
    const outcome = await tab.evaluate(`(async () => {
      const asked = await fetch("http://127.0.0.1:1/").then(() => "answered", (error) => error.name);
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      return { asked, ran: window.ran === true };
    })()`);
    expect(outcome).toEqual({ asked: "TypeError", ran: false });
  },
  SHOWN_MS * 2,
);

test("its files come from this service, with a policy that allows nothing else", async () => {
  const page = await sendChecked(http, write.url, "/docs");
  const script = await sendChecked(http, write.url, "/docs/page.js");
  for (const { headers } of [page, script])
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
  const policy = String(page.headers["content-security-policy"]);
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  for (const [, file = ""] of page.body.matchAll(/(?:src|href)="(docs\/[^"]+)"/g))
    expect((await sendChecked(http, write.url, `/${file}`)).status).toBe(200);
  for (const name of ["package.json", "..%2fpackage.json", "swagger-ui.js", "__proto__", "%00"])
    expect((await sendChecked(http, write.url, `/docs/${name}`)).status).toBe(404);
});

test("an address of another document in the page's own URL is refused before the page could read it", async () => {
  const { status } = await sendChecked(http, write.url, "/docs?url=http%3A%2F%2F127.0.0.1%3A1%2Fevil.json");
  expect(status).toBe(400);
});
