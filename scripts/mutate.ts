// Takes one rule after the other out of a copy of the product, and sees which experiments notice.
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Mutation, mutations } from "../tests/evidence/mutations.ts";
import { runCommand, UsageError } from "./command.ts";
import { replaceMarked } from "./marked-part.ts";

const HELP = `Takes one safety rule after the other out of a copy of the product, and runs the experiments that must notice.

Usage: pnpm mutate [name ...] [--write]

  name     which mutations; all of them where none is named
  --write  put the result into tests/evidence/README.md (needs all of them)
  --list   what there is

Exit status: 0 each was noticed, 1 one was not, 64 wrong arguments.
`;
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const REPORT = join(ROOT, "tests/evidence/README.md");
/** A build takes some ten seconds, a handful of experiments a minute or two. */
const STEP_TIMEOUT_MS = 600_000;
/** The results of a few experiments: kilobytes. */
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;

type Outcome = { mutation: Mutation; red: string[] };

/** Copies what is under version control, and the installed packages by their links. */
function copyProject(): string {
  const copy = mkdtempSync(join(tmpdir(), "linkfence-mutation-"));
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT });
  for (const file of listed.toString("utf8").split("\0")) {
    if (file === "" || !existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(ROOT, file), join(copy, file));
    const modules = join(dirname(file), "node_modules");
    // The links of a workspace package are relative, so that in the copy they lead to the copy's own packages.
    if (file.endsWith("/package.json") && existsSync(join(ROOT, modules)))
      cpSync(join(ROOT, modules), join(copy, modules), { recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Applies the edits, and returns how to take them back. Throws where a text is not there exactly once. */
function apply(copy: string, { name, edits }: Mutation): () => void {
  const originals = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const path = join(copy, file);
    const text = readFileSync(path, "utf8");
    if (text.split(find).length !== 2) throw new Error(`${name}: ${file} does not hold the text once: ${find.trim()}`);
    if (!originals.has(path)) originals.set(path, text);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return () => {
    for (const [path, text] of originals) writeFileSync(path, text);
  };
}

const run = promisify(execFile);
/** What runs in the copy at the moment. */
const running = new Set<ChildProcess>();

async function build(copy: string): Promise<void> {
  const building = run("npm", ["run", "--silent", "build"], { cwd: copy, timeout: STEP_TIMEOUT_MS });
  running.add(building.child);
  await building.finally(() => running.delete(building.child));
}

let brokenOffBy: NodeJS.Signals | undefined;

/** A run that is broken off ends what runs in the copy, and comes to its end as if that had failed. */
function breakOffOnSignal(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      brokenOffBy = signal;
      for (const child of running) child.kill(signal);
    });
  }
}

/** Runs experiments in the copy, and returns the ids of those that failed. */
async function failing(copy: string, cases: readonly string[]): Promise<string[]> {
  const args = ["--conditions=source", "--import", "tsx", "scripts/evidence.ts", "--json", ...cases];
  const child = spawn(process.execPath, args, {
    cwd: copy,
    stdio: ["ignore", "pipe", "ignore"],
    timeout: STEP_TIMEOUT_MS,
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let output = "";
  for await (const chunk of child.stdout) {
    output += String(chunk);
    if (output.length > OUTPUT_MAX_BYTES) throw new Error("the experiments printed more than 16 MiB");
  }
  const { results } = JSON.parse(output) as { results: { id: string; passed: number; failed: number }[] };
  if (results.length !== cases.length) throw new Error(`ran ${results.length} of ${cases.length} experiments`);
  return results.filter(({ failed }) => failed > 0).map(({ id }) => id);
}

async function tryAll(wanted: readonly Mutation[]): Promise<Outcome[]> {
  const copy = copyProject();
  breakOffOnSignal();
  const outcomes: Outcome[] = [];
  try {
    await build(copy);
    const all = [...new Set(wanted.flatMap(({ cases }) => cases))];
    const broken = await failing(copy, all);
    if (broken.length > 0) throw new Error(`red before anything was taken out: ${broken.join(", ")}`);
    process.stdout.write(`unchanged: ${all.join(", ")} hold\n`);
    for (const mutation of wanted) {
      if (brokenOffBy) break;
      const undo = apply(copy, mutation);
      await build(copy);
      const red = await failing(copy, mutation.cases);
      undo();
      outcomes.push({ mutation, red });
      process.stdout.write(
        `${red.length > 0 ? "ok  " : "FAIL"} ${mutation.name}: ${red.join(", ") || "nobody noticed"}\n`,
      );
    }
  } catch (error) {
    if (!brokenOffBy) throw error;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return outcomes;
}

function writeReport(outcomes: readonly Outcome[]): void {
  const rows = outcomes.map(({ mutation: { name, change, cases }, red }) => {
    return `| ${name} | ${change} | ${red.join(", ")} | ${cases.filter((id) => !red.includes(id)).join(", ")} |`;
  });
  const head = ["| mutation | what it changes | turned red | tried, stayed green |", "| --- | --- | --- | --- |"];
  writeFileSync(REPORT, replaceMarked(readFileSync(REPORT, "utf8"), "mutations", [...head, ...rows].join("\n")));
}

function decideMutations(names: readonly string[], write: boolean): readonly Mutation[] {
  const unknown = names.filter((name) => !mutations.some((mutation) => mutation.name === name));
  if (unknown.length > 0) throw new UsageError(`no mutation ${unknown.join(", ")}: --list says which there are`);
  if (write && names.length > 0) throw new UsageError("--write needs all of the mutations: name none");
  return mutations.filter(({ name }) => names.length === 0 || names.includes(name));
}

await runCommand({
  help: HELP,
  options: { write: { type: "boolean", default: false }, list: { type: "boolean", default: false } },
  async run({ write, list }, names) {
    const wanted = decideMutations(names, write);
    if (list) {
      for (const { name, change } of wanted) process.stdout.write(`${name} :: ${change}\n`);
      return 0;
    }
    const outcomes = await tryAll(wanted);
    if (brokenOffBy) return 128 + constants.signals[brokenOffBy];
    const noticed = outcomes.filter(({ red }) => red.length > 0).length;
    if (write) writeReport(outcomes);
    process.stdout.write(`${noticed} passed, ${outcomes.length - noticed} failed\n`);
    return noticed === outcomes.length ? 0 : 1;
  },
});
