import { describe, expect, test } from "@jest/globals";
import { USER_AGENT_MAX } from "@linkfence/contracts";
import fc from "fast-check";
import { classify, classifyAnew } from "./classify.ts";

const of = (userAgent: string | null) => {
  const { browser, os, device, bot } = classify({ userAgent });
  return `${bot ? "bot" : "person"} ${[browser, os, device].filter(Boolean).join(", ")}`.trim();
};

const WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)";
const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
const BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)";

describe("a person", () => {
  test.each([
    [`${WINDOWS} ${BLINK} Chrome/126.0.0.0 Safari/537.36`, "Chrome, Windows, desktop"],
    [`${WINDOWS} ${BLINK} Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0`, "Microsoft Edge, Windows, desktop"],
    [`${WINDOWS} ${BLINK} Chrome/126.0.0.0 Safari/537.36 OPR/112.0.0.0`, "Opera, Windows, desktop"],
    ["Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0", "Firefox, Linux, desktop"],
    [`${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15`, "Safari, macOS, desktop"],
    [`${IPHONE} Version/17.5 Mobile/15E148 Safari/604.1`, "Safari, iOS, mobile"],
    [`${IPHONE} CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1`, "Chrome, iOS, mobile"],
    [
      `Mozilla/5.0 (Linux; Android 14; SM-S918B) ${BLINK} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36`,
      "Samsung Internet for Android, Android, mobile",
    ],
    [
      "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 Version/16.6 Safari/604.1",
      "Safari, iOS, tablet",
    ],
  ])("%s is known by families alone", (userAgent, expected) => expect(of(userAgent)).toBe(`person ${expected}`));

  test.each([
    null,
    "",
    " ",
    "curl/8.5.0",
    "curl/7.88.1",
    "Wget/1.21.3",
    "node",
    "x",
    "Mozilla/5.0 (X11; Linux x86_64)",
  ])("is what %j stands for: it says nothing of being a program of its own", (userAgent) =>
    expect(of(userAgent)).toMatch(/^person/),
  );
});

describe("a bot", () => {
  test.each([
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Twitterbot/1.0",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "WhatsApp/2.23.20.0",
    "TelegramBot (like TwitterBot)",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
    "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.example/) Bot",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
    "Pleroma 2.5.0; https://pleroma.example <admin@pleroma.example>; Bot",
    "python-requests/2.32.0",
    "Go-http-client/2.0",
    `${WINDOWS} ${BLINK} HeadlessChrome/126.0.0.0 Safari/537.36`,
    "GPTBot/1.2 (+https://openai.com/gptbot)",
  ])("is %s", (userAgent) => expect(of(userAgent)).toMatch(/^bot/));
});

/** Any 512 UTF-16 units, among them NUL and halves of surrogates. */
const anyUnits = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
  maxLength: USER_AGENT_MAX,
});
const names = fc.constantFrom("Mozilla/5.0 ", "Version/", "Macintosh", " FxiOS", "Chrome/", "Android ", "bot", "<b>");
const anyTokens = fc
  .array(fc.oneof(names, fc.string({ maxLength: 9 })), { maxLength: 60 })
  .map((parts) => parts.join(""));

describe("hostile text", () => {
  test("never gives a name that is not on the lists", () => {
    fc.assert(
      fc.property(fc.oneof(anyUnits, anyTokens), (userAgent) => {
        const { browser, os, device, bot } = classifyAnew(userAgent);
        for (const name of [browser, os, device]) {
          expect(name).toMatch(/^[A-Za-z0-9 -]{0,64}$/);
        }
        expect(typeof bot).toBe("boolean");
      }),
      { numRuns: 500 },
    );
  });

  test("gives the same whether it is remembered or not", () => {
    fc.assert(
      fc.property(fc.oneof(anyUnits, anyTokens), (userAgent) => {
        const fresh = classifyAnew(userAgent);
        expect([classify({ userAgent }), classify({ userAgent })]).toEqual([fresh, fresh]);
      }),
    );
  });

  /** What backtracks: repeated parts of the libraries' own patterns, with an end that they do not expect. */
  const families: [string, (length: number) => string][] = [
    "/",
    "a/",
    "Macintosh",
    "version/1.1",
    "1_",
    "opt/1",
    "(",
    "yahoo ",
    "nexus ",
    "%:",
    "1.",
    "google ",
    "http",
    "@a-",
  ].map((part) => [part, (length: number) => `${part.repeat(length)}`.slice(0, length - 1).concat("\n")]);

  test.each(families)("made of %j takes no more than the square of its length", (_part, make) => {
    const [short, long] = [cost(make(USER_AGENT_MAX / 8)), cost(make(USER_AGENT_MAX))];
    // Eight times as long: linear is 8, the square 64; anything exponential would not end at all. A busy machine may double it.
    expect(long / short).toBeLessThan(2 * 64);
  });
});

/** The least of many tries, each of many calls: what the machine does beside it only adds. */
function cost(userAgent: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20; round += 1) {
    const startedAt = process.hrtime.bigint();
    for (let call = 0; call < 20; call += 1) classifyAnew(userAgent);
    least = Math.min(least, Number(process.hrtime.bigint() - startedAt));
  }
  return least;
}
