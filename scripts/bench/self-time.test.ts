import { describe, expect, test } from "@jest/globals";
import { type Profile, readSources, sumSelfTime } from "./self-time.ts";

const URL_OF_IT = "file:///main.js";
const BUNDLE = [
  "// node_modules/.pnpm/some+thing@1.0.0/node_modules/something/index.js",
  "function library() {}",
  "// services/redirect/src/http/hot-path.ts",
  "function answer() {}",
  "// a sentence that mentions no/file.ts at all",
  "function serve() {}",
  "// services/redirect/src/clicks/click-ring.ts",
  "function push() {}",
  "// packages/link-feed/src/follow.ts",
  "function follow() {}",
].join("\n");
const sourceOf = readSources(URL_OF_IT, BUNDLE);

/** Functions called one by the next, outermost first; the last has all the time. */
function stack(...frames: readonly (readonly [name: string, url: string, line?: number])[]): Profile {
  const all = [["(root)", ""] as const, ...frames];
  const nodes = all.map(([functionName, url, lineNumber = -1], n) => ({
    id: n + 1,
    callFrame: { functionName, url, lineNumber },
    ...(n + 1 < all.length ? { children: [n + 2] } : {}),
  }));
  return { nodes, samples: [all.length, all.length], timeDeltas: [700, 300] };
}

const answer = ["answer", URL_OF_IT, 3] as const;
const push = ["push", URL_OF_IT, 7] as const;
const follow = ["follow", URL_OF_IT, 9] as const;
const end = ["end", "node:_http_outgoing"] as const;

test("lines of a bundle are known by the file that they come from", () => {
  expect(sourceOf(URL_OF_IT, 1)).toMatch(/something\/index\.js$/);
  expect(sourceOf(URL_OF_IT, 5)).toBe("services/redirect/src/http/hot-path.ts");
  expect(sourceOf("file:///other.js", 5)).toBeNull();
});

describe("the time of a function is spent on", () => {
  test.each([
    ["the answer, where it stands in the hot path", [answer], "hot"],
    ["HTTP, where Node does it for the answer", [answer, end], "http"],
    ["the socket, where it is the system call", [answer, end, ["writeLatin1String", ""]], "write"],
    ["HTTP, where Node's own code calls a native one", [answer, end, ["RegExp: x", ""]], "http"],
    ["the answer, where the hot path calls a native one", [answer, ["get", ""]], "hot"],
    ["the answer, where it needs what stands elsewhere", [answer, ["library", URL_OF_IT, 1]], "hot"],
    ["the click, where it is kept on the answer's way", [answer, push], "clicks"],
    [
      "the click, where Node's own code serves it",
      [push, ["request", "node:http"], ["writeLatin1String", ""]],
      "clicks",
    ],
    [
      "the click, where a file is written",
      [
        ["write", "node:fs"],
        ["writeBuffer", ""],
      ],
      "clicks",
    ],
    ["anything else, Node's work for it included", [follow, ["write", "node:net"], ["writeUtf8String", ""]], "rest"],
    ["the collector, whoever made the garbage", [push, ["(garbage collector)", ""]], "collector"],
    ["HTTP, where Node is called by nobody", [["parserOnHeadersComplete", "node:_http_common"]], "http"],
  ] as const)("%s", (_, frames, group) => {
    const sums = sumSelfTime(stack(...frames), sourceOf);
    expect(sums).toMatchObject({ [group]: 1000 });
    expect(Object.values(sums).reduce((sum, us) => sum + us, 0)).toBe(1000);
  });
});

test("the profiler's own beginning is nobody's time", () => {
  const sums = sumSelfTime(stack(["", "file:///bench/servers/profiled.mjs", 3], ["post", "node:inspector"]), sourceOf);
  expect(Object.values(sums).every((us) => us === 0)).toBe(true);
});
