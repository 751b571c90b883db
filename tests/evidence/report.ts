/** What one experiment says: each line as it comes, and the tally at its end. */
export type Report = {
  /** One assertion. Compares by value; prints expected and actual either way. Returns whether it held. */
  check(what: string, actual: unknown, expected: unknown): boolean;
  /** Something observed that is not judged: counts, milliseconds. */
  note(text: string): void;
  /** A note short enough for README's table, and worth standing there. */
  figure(text: string): void;
};

/** One experiment of the catalogue. */
export type EvidenceCase = {
  id: string;
  /** What it shows, as a sentence without a full stop. */
  shows: string;
  /** True for the scenario with a rule taken out, which has to show the damage. */
  control?: true;
  /** True where `CaseOptions.file` means something to it. */
  readsFile?: true;
  /** What has to be installed before this case can run, or null when it is there. */
  missing?(): Promise<string | null>;
  run(report: Report, options: CaseOptions): Promise<void>;
};

export type CaseOptions = {
  /** Input of the case, where it takes one. */
  file: string | null;
};

export type CaseLine = { kind: "ok" | "FAIL" | "note" | "skipped"; text: string };
export type CaseResult = {
  id: string;
  shows: string;
  control: boolean;
  lines: CaseLine[];
  /** The notes for README's table. */
  figures: string[];
  passed: number;
  failed: number;
};

/** The longest case takes about two minutes; this only ends a broken one. */
export const CASE_TIMEOUT_MS = 300_000;

/** Runs one case. An error that it throws is a failed line, and so is a missed deadline; `print` gets each line at once. */
export async function runCase(
  evidence: EvidenceCase,
  options: CaseOptions,
  print: (line: string) => void,
): Promise<CaseResult> {
  const lines: CaseLine[] = [];
  const figures: string[] = [];
  const add = (kind: CaseLine["kind"], text: string) => {
    lines.push({ kind, text });
    print(`${kind.padEnd(4)} ${text}`);
  };
  print(`CASE ${evidence.id} :: ${evidence.shows}`);
  const report: Report = {
    check(what, actual, expected) {
      const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
      const held = got === wanted;
      add(held ? "ok" : "FAIL", `${what}: expected ${wanted}, actual ${got}`);
      return held;
    },
    note: (text) => add("note", text),
    figure(text) {
      figures.push(text);
      add("note", text);
    },
  };
  const missing = (await evidence.missing?.()) ?? null;
  if (missing === null) await runInTime(evidence, report, options, add);
  else add("skipped", missing);
  const count = (kind: CaseLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  // A case that judged nothing has shown nothing.
  if (missing === null && count("ok") + count("FAIL") === 0) add("FAIL", "nothing was asserted");
  const { id, shows, control = false } = evidence;
  return { id, shows, control, lines, figures, passed: count("ok"), failed: count("FAIL") };
}

async function runInTime(
  evidence: EvidenceCase,
  report: Report,
  options: CaseOptions,
  add: (kind: "FAIL", text: string) => void,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${CASE_TIMEOUT_MS / 1000} s`)), CASE_TIMEOUT_MS);
  });
  try {
    await Promise.race([evidence.run(report, options), late]);
  } catch (error) {
    add("FAIL", `ended by an error: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    clearTimeout(timer);
  }
}
