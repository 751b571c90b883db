// What becomes of `#...` across a redirect. A fragment is never sent, so only a browser can show it (RFC 9110 10.2.2).
import { createHttpClient } from "@linkfence/testkit";
import { startBrowser } from "./browser.ts";
import { closingAfterwards } from "./closing.ts";
import { startLandingPages } from "./landing-pages.ts";
import { missingPrograms } from "./programs.ts";
import type { EvidenceCase } from "./report.ts";
import { startLinkfence } from "./shorteners.ts";

/** The target's fragment, the visitor's, and the one that the visitor arrives with. */
const ROWS = [
  { code: "neither", target: "", visitor: "", arrives: "" },
  { code: "target-only", target: "#chapter-2", visitor: "", arrives: "#chapter-2" },
  { code: "visitor-only", target: "", visitor: "#mine", arrives: "#mine" },
  { code: "both", target: "#chapter-2", visitor: "#mine", arrives: "#chapter-2" },
  { code: "empty", target: "#", visitor: "#mine", arrives: "#" },
  { code: "escaped", target: "#caf%C3%A9/%23?x", visitor: "#mine", arrives: "#caf%C3%A9/%23?x" },
];

export const p1: EvidenceCase = {
  id: "P1",
  shows: "a target's fragment wins over the visitor's, which is kept where the target has none",
  missing: () => missingPrograms("chromium"),
  async run(report) {
    await closingAfterwards(async (later) => {
      const http = createHttpClient();
      later(http.close);
      const pages = await startLandingPages();
      later(pages.close);
      const shortener = await startLinkfence();
      later(shortener.stop);
      const browser = await startBrowser();
      later(browser.close);
      report.note(`Chromium ${browser.version()}`);
      for (const { code, target, visitor, arrives } of ROWS) {
        const page = `${pages.url}/${code}`;
        await shortener.create(code, page + target);
        const { headers } = await http.send(shortener.url, `/${code}`);
        report.check(`${code}: Location`, headers.location, page + target);
        const { url } = await browser.type(`${shortener.url}/${code}${visitor}`);
        report.check(`${code}: the visitor's address bar`, url, page + arrives);
      }
      const paths = ROWS.map(({ code }) => `/${code}`);
      report.check("what the site was asked for, without any fragment", pages.asked(), paths);
    });
  },
};
