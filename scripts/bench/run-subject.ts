// Runs one subject on a server of its own, and keeps what it came to as a file.
import { mkdir, writeFile } from "node:fs/promises";
import { constants, cpus } from "node:os";
import { dirname } from "node:path";
import { killStartedProcesses } from "@linkfence/testkit";
import type { Bench, Subject } from "./bench-subject.ts";
import { openOwnServer } from "./own-server.ts";
import { createResults, formatTable, type Results } from "./results.ts";

/** Seeding ten million links takes minutes, measuring them as many; this ends what hangs. */
const DEADLINE_MS = 60 * 60_000;

export type Run = Omit<Bench, "server" | "results" | "tell"> & {
  name: string;
  subject: Subject;
  data: string | null;
  /** Where the results go. */
  file: string;
};

/** Measures it, and writes the file. */
export async function runSubject({ name, subject, data, file, ...bench }: Run, tell: Bench["tell"]): Promise<Results> {
  const results = createResults(tell, bench.quick);
  const server = await openOwnServer(data);
  const end = (status: number) => {
    killStartedProcesses();
    void server.close().finally(() => process.exit(status));
  };
  const signals = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
    const onSignal = () => end(128 + constants.signals[signal]);
    process.once(signal, onSignal);
    return () => process.off(signal, onSignal);
  });
  const late = setTimeout(() => {
    tell(`it took longer than ${DEADLINE_MS / 60_000} minutes`);
    end(1);
  }, DEADLINE_MS);
  try {
    await subject.run({ ...bench, server, results, tell });
  } finally {
    clearTimeout(late);
    for (const off of signals) off();
    await server.close();
  }
  await mkdir(dirname(file), { recursive: true });
  const run = { ...describeRun({ name, ...bench }), ...pick(results) };
  await writeFile(file, `${JSON.stringify(run, null, 2)}\n`);
  return results;
}

const pick = ({ figures, claims, samples, refused, tables }: Results) => ({
  ...{ figures, claims, samples, refused },
  ...(tables.length > 0 ? { tables } : {}),
});

/** What was run, and on what: figures of two machines are not to be compared by accident. */
function describeRun({ name, size, pace, parts, quick }: Pick<Run, "name" | "size" | "pace" | "parts" | "quick">) {
  const [first] = cpus();
  const machine = { processor: first?.model.trim() ?? "", cores: cpus().length, node: process.version };
  return { subject: name, links: size.links, quick, at: new Date().toISOString(), machine, pace, parts };
}

/** The results as a table for people. */
export function formatResults({ figures, claims }: Results): string {
  return formatTable([
    ...figures.map(({ what, value }) => [what, value, "", ""]),
    ...claims.map(({ what, value, bound, held }) => [what, value, bound, held ? "kept" : "NOT KEPT"]),
  ]);
}
