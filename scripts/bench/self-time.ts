// Where a profile's time goes, by what the code is for. Node's own functions have no place of their own in it: what they do
// for a server's answers and what they do for the click path is told apart by who called them.

/** What is read of a profile as V8 writes it; times in µs. */
export type Profile = {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number }; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
};

export const GROUPS = {
  write: "writing answers to sockets (the kernel's delivery included)",
  http: "Node's own JavaScript: HTTP, streams, timers and events",
  hot: "finding and making the answer (`http/`, `cache/`, `domain/`, the shell's watch over requests)",
  clicks: "clicks (`clicks/`, `spool/`, files, the exchange with click-ingest)",
  collector: "garbage collector",
  program: "outside of JavaScript: the event loop, reading and parsing requests",
  rest: "anything else (change log, registry, metrics)",
  idle: "idle: waiting for the load, or stolen by the machine below",
} as const;
export type Group = keyof typeof GROUPS;

/** Says of a line of a program, counted from 0, which source file it comes from; null where nobody knows. */
export type SourceOf = (url: string, line: number) => string | null;

/** esbuild writes the name of each file above what comes from it. */
const MARKER = /^\/\/ (\S+\/\S+\.[cm]?[jt]s)$/;

/** Reads a program that esbuild has put together. */
export function readSources(url: string, text: string): SourceOf {
  const files: (string | null)[] = [];
  let file: string | null = null;
  for (const line of text.split("\n")) {
    file = MARKER.exec(line)?.[1] ?? file;
    files.push(file);
  }
  return (asked, line) => (asked === url ? (files[line] ?? null) : null);
}

const V8: Readonly<Record<string, Group>> = {
  "(garbage collector)": "collector",
  "(program)": "program",
  "(idle)": "idle",
};
/** Of a stream's handle: each is one system call. */
const WRITES = /^write(Latin1String|Utf8String|AsciiString|v|Buffer)$/;
const OF_CLICKS = /^services\/redirect\/src\/(clicks|spool)\//;
const OF_ANSWERS =
  /^services\/redirect\/src\/(http|cache|domain)\/|^services\/redirect\/src\/app\.|^packages\/service-shell\/src\/(http-server|request-fault)\.ts$|\/bare\.mjs$/;
/** What only the click path has: Node's client, and files. */
const ONLY_CLICKS = /^node:(_http_client|fs|internal\/fs\/)/;

/** What begins a profile, and takes some hundredths of a short one. */
const PROFILER = /\/profiled\.mjs$/;

type Frame = Profile["nodes"][number]["callFrame"];
/** Who called a function: what the nearest of the program's own is for, and whether the nearest of all is Node's. */
type Caller = { group: Group | null; isNodes: boolean };

/** What a function of the program is for; null for one of Node's own. */
function groupOf({ url, lineNumber }: Frame, sourceOf: SourceOf): Group | null {
  if (ONLY_CLICKS.test(url)) return "clicks";
  if (url === "" || url.startsWith("node:")) return null;
  const source = sourceOf(url, lineNumber) ?? url;
  if (OF_CLICKS.test(source)) return "clicks";
  return OF_ANSWERS.test(source) ? "hot" : "rest";
}

/**
 * Adds up the time that was spent in functions themselves, in µs by group; without that of the profiler.
 * @param sourceOf of a server that is no bundle the URL itself is the source
 */
export function sumSelfTime({ nodes, samples, timeDeltas }: Profile, sourceOf: SourceOf): Record<Group, number> {
  const sums = emptySums();
  const self = new Map<number, number>();
  samples.forEach((id, n) => {
    self.set(id, (self.get(id) ?? 0) + (timeDeltas[n] ?? 0));
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const walk = (id: number, caller: Caller): void => {
    const node = byId.get(id);
    if (!node || PROFILER.test(node.callFrame.url)) return;
    const { callFrame, children = [] } = node;
    const own = onBehalf(groupOf(callFrame, sourceOf), caller);
    sums[judge(callFrame, own, caller)] += self.get(id) ?? 0;
    const isNodes = callFrame.url === "" ? caller.isNodes : callFrame.url.startsWith("node:");
    for (const child of children) walk(child, { group: own ?? caller.group, isNodes });
  };
  const [root] = nodes;
  if (root) walk(root.id, { group: null, isNodes: true });
  return sums;
}

/** No time at all. */
export function emptySums(): Record<Group, number> {
  return { write: 0, http: 0, hot: 0, clicks: 0, collector: 0, program: 0, rest: 0, idle: 0 };
}

/** What is called for a click is its cost, and what an answer needs is the answer's, wherever it stands. */
function onBehalf(own: Group | null, { group }: Caller): Group | null {
  if (group === "clicks") return group;
  return own === "rest" && group === "hot" ? group : own;
}

function judge({ functionName, url }: Frame, own: Group | null, { group, isNodes }: Caller): Group {
  const ofV8 = V8[functionName];
  if (ofV8 !== undefined) return ofV8;
  if (own !== null) return own;
  if (group === "rest") return group;
  if (url !== "") return "http";
  // A native function has no place: those of a program's own (Map, Date) are called by it, and Node's by Node.
  if (WRITES.test(functionName)) return "write";
  return isNodes || group === null ? "http" : group;
}
