// What the servers that redirects are held against do of the same logic: a link from memory, its end, a click that is kept
// until somebody takes it away. As one writes it who does not count allocations.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

/** Clicks that are kept at most; the oldest go first. As many as a redirect process keeps. */
const CLICKS_MAX = 65_536;
const clicks = new Array(CLICKS_MAX);
let clicked = 0;

/** Reads codes, one a line, from the file that the process was started with. */
export function readLinks() {
  const links = new Map();
  for (const code of readFileSync(process.argv[2] ?? "", "utf8").split("\n")) {
    if (code !== "")
      links.set(code, {
        code,
        target: `https://www.example.com/articles/${code}?utm_source=newsletter&utm_medium=email`,
        expiresAt: Number.POSITIVE_INFINITY,
      });
  }
  return links;
}

/** The link to follow, undefined where there is none; its click is kept. */
export function follow(links, code, headers) {
  const link = links.get(code);
  const at = Date.now();
  if (!link || at >= link.expiresAt) return undefined;
  clicks[clicked % CLICKS_MAX] = {
    id: randomUUID(),
    code,
    at,
    referrer: headers.referer,
    userAgent: headers["user-agent"],
    prefetch: headers["sec-purpose"] !== undefined,
  };
  clicked += 1;
  return link;
}

/** Tells whoever started this process where it listens. */
export function tell(port) {
  process.stdout.write(`${JSON.stringify({ level: "info", service: "bench", message: "listening", port })}\n`);
}
