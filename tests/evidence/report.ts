/** What one experiment says: each line as it comes, and the tally at its end. */
export type Report = {
  /** One assertion. Compares by value; prints expected and actual either way. Returns whether it held. */
  check(what: string, actual: unknown, expected: unknown): boolean;
  /** Something observed that is not judged: counts, milliseconds. */
  note(text: string): void;
};

/** One experiment of the catalogue. */
export type EvidenceCase = {
  id: string;
  /** What it shows, as a sentence without a full stop. */
  shows: string;
  run(report: Report, options: CaseOptions): Promise<void>;
};

export type CaseOptions = {
  /** Input of the case, where it takes one. */
  file: string | null;
};

export type CaseLine = { kind: "ok" | "FAIL" | "note"; text: string };
export type CaseResult = { id: string; shows: string; lines: CaseLine[]; passed: number; failed: number };

/** Runs one case. An error that it throws is a failed line; `print` gets each line at once. */
export async function runCase(
  evidence: EvidenceCase,
  options: CaseOptions,
  print: (line: string) => void,
): Promise<CaseResult> {
  const lines: CaseLine[] = [];
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
  };
  try {
    await evidence.run(report, options);
  } catch (error) {
    add("FAIL", `ended by an error: ${error instanceof Error ? error.message : String(error)}`);
  }
  const count = (kind: CaseLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { id: evidence.id, shows: evidence.shows, lines, passed: count("ok"), failed: count("FAIL") };
}
