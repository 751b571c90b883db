// README's table of experiments, made from what a run of them printed.
import { readFileSync } from "node:fs";
import { catalogue } from "../tests/evidence/catalogue.ts";
import { readMarked, replaceMarked } from "./marked-part.ts";

/** What `pnpm evidence --json` prints, as far as the table needs it. */
type Run = { results: { id: string; figures: string[]; passed: number; failed: number }[] };

/**
 * Reads what `pnpm evidence --json` printed into a file.
 * @throws Error that says which experiments are missing or did not hold: the table tells of whole runs only
 */
export function readRun(path: string): Map<string, string[]> {
  const { results } = JSON.parse(readFileSync(path, "utf8")) as Run;
  const broken = new Set(results.filter(({ passed, failed }) => failed > 0 || passed === 0).map(({ id }) => id));
  // Of several runs the last one is told; a case without figures of its own tells how much it asserted.
  const held = new Map(
    results.map(({ id, figures, passed }) => [
      id,
      figures.length > 0 ? figures : [passed === 1 ? "1 assertion held" : `${passed} assertions held`],
    ]),
  );
  const lacking = catalogue.filter(({ id }) => broken.has(id) || !held.has(id)).map(({ id }) => id);
  if (lacking.length > 0) throw new Error(`did not run, or did not hold: ${lacking.join(", ")}`);
  return held;
}

/** Replaces the table of experiments. */
export function withEvidence(readme: string, run: ReadonlyMap<string, readonly string[]>): string {
  const rows = catalogue.map(({ id }) => `${claim(id)} ${cell((run.get(id) ?? []).join("; "))} |`);
  const table = ["| case | what it shows | observed in the last run |", "| --- | --- | --- |", ...rows].join("\n");
  return replaceMarked(readme, "evidence", table);
}

/** The part of each row that does not depend on a run: id and claim. */
export function claims(): string[] {
  return catalogue.map(({ id }) => claim(id));
}

/** The same part of each row as README has it. */
export function claimsIn(readme: string): string[] {
  const rows = readMarked(readme, "evidence").split("\n").slice(2);
  return rows.map((row) => row.split(" | ").slice(0, 2).join(" | ").concat(" |"));
}

function claim(id: string): string {
  const found = catalogue.find((evidence) => evidence.id === id);
  return `| ${id} | ${found?.control ? "**control**: " : ""}${cell(found?.shows ?? "")} |`;
}

/** A bar would end the cell. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
