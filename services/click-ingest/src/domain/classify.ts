// What a user agent says of itself: families alone, from lists of known names, as anybody may send anything.
//
// A bot is what says that it is one: a crawler, a previewer, a monitor, a library of a program. A text that says nothing of
// the kind is a person's, and so are none at all and the plain name of a tool that people start by hand: a click that is
// left out of the total for no reason cannot be put back, while an honest bot names itself.
import type { Click } from "@linkfence/contracts";
import bowser from "bowser";
import { createIsbotFromList, list } from "isbot";
import { LRUCache } from "lru-cache";

export type Classes = {
  /** Empty where nothing is known, as are the next two; of at most 64 characters. */
  browser: string;
  os: string;
  device: string;
  bot: boolean;
};

/** Whatever finds one of these a bot is left out of the list of what bots say. */
const TOOLS = ["curl/8.5.0", "Wget/1.21.4", "node"];
/** What a browser and a system are stands at the beginning; a longer text only costs time. */
const READ_MAX = 256;
/** As many different texts as a busy service sees in some minutes: 8 MB at the most, as each has 512 characters or less. */
const REMEMBERED = 4096;

const looksLikeBot = createIsbotFromList(
  list.filter((part) => !TOOLS.some((tool) => new RegExp(part, "i").test(tool))),
);
/** Names that the library may give. What it reads out of the text itself is none of them. */
const BROWSERS = new Set(Object.values(bowser.BROWSER_MAP).filter((name) => name !== "Generic"));
const SYSTEMS = new Set(Object.values(bowser.OS_MAP));
const DEVICES = new Set(["desktop", "mobile", "tablet", "tv"]);
const UNKNOWN: Classes = { browser: "", os: "", device: "", bot: false };

const remembered = new LRUCache<string, Classes>({ max: REMEMBERED });

/** Classifies a click by its user agent. The same text always gives the same; that some are remembered only saves time. */
export function classify({ userAgent }: Pick<Click, "userAgent">): Classes {
  if (userAgent === null) return UNKNOWN;
  const known = remembered.get(userAgent);
  if (known) return known;
  const classes = classifyAnew(userAgent);
  remembered.set(userAgent, classes);
  return classes;
}

/** The same without remembering anything. */
export function classifyAnew(userAgent: string): Classes {
  if (userAgent === "") return UNKNOWN;
  const parser = bowser.getParser(userAgent.slice(0, READ_MAX), true);
  const within = (names: ReadonlySet<string>, name: string | undefined) => (name && names.has(name) ? name : "");
  return {
    browser: within(BROWSERS, parser.getBrowserName()),
    os: within(SYSTEMS, parser.getOSName()),
    device: within(DEVICES, parser.getPlatformType(true)),
    bot: looksLikeBot(userAgent),
  };
}
