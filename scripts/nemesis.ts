// Runs acknowledged revocation on real processes while one thing after the other goes wrong.
import { constants } from "node:os";
import { killStartedProcesses } from "@linkfence/testkit";
import { CONTROLS, type Control } from "../tests/nemesis/controls.ts";
import { runNemesis } from "../tests/nemesis/run.ts";
import { summarise, tellFault, tellProgress } from "../tests/nemesis/summary.ts";
import { readNumber, runCommand, UsageError } from "./command.ts";

const HELP = `Runs two write processes and several redirect processes on a PostgreSQL of their own. Links are created, followed on every
process without a break, and revoked, while processes are stopped, killed and restarted, connections cut, lost and slowed,
and the database is restarted and killed. Whatever is answered is kept, and judged by one clock: no request that was sent
after a confirmation may be answered with the old target. One seed decides which faults there are.

Usage: pnpm nemesis [--minutes <n>] [--seed <n>] [--instances <n>] [--rate <n>] [--without <rule>]

  --minutes <n>     how long faults happen (0.1 to 10080); 10 unless it says otherwise
  --seed <n>        0 to 4294967295; chosen anew each time unless it says otherwise, and printed
  --instances <n>   redirect processes (1 to 20); 5 unless it says otherwise
  --rate <n>        requests a second to each of them (1 to 1000); 40 unless it says otherwise
  --without <rule>  takes a rule out, and ends with the first violation:
${CONTROLS.map(({ name, change }) => `                    ${name}: ${change}`).join("\n")}

Ctrl-C heals what is broken, prints what was seen, and leaves no process behind; a second one does not wait.

Exit status: 0 nothing was wrong, 1 something was, 64 wrong arguments, 130 broken off by Ctrl-C.
`;
const SEED_MAX = 2 ** 32 - 1;
const WRITES = 2;
/** So short that processes are fenced all the time, and far longer than a busy machine takes for anything. */
const TTL_MS = 2000;

function findControl(wanted: string | undefined): Control | undefined {
  const control = CONTROLS.find(({ name }) => name === wanted);
  if (wanted !== undefined && !control)
    throw new UsageError(`no rule ${wanted}: there are ${CONTROLS.map(({ name }) => name).join(", ")}`);
  return control;
}

/** Says when the run is broken off, and by what. A second signal ends everything at once. */
function watchSignals() {
  const brokenOff = new AbortController();
  let by: NodeJS.Signals | null = null;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      if (brokenOff.signal.aborted) {
        killStartedProcesses();
        process.exit(128 + constants.signals[signal]);
      }
      by = signal;
      process.stderr.write("broken off: healing what is broken\n");
      brokenOff.abort();
    });
  // Also where an error that nobody caught ends this process: the server has a guard of its own, services have none.
  process.once("exit", killStartedProcesses);
  return { brokenOff: brokenOff.signal, status: () => (by === null ? 0 : 128 + constants.signals[by]) };
}

type Wish = { ms: number; seed: number; redirects: number; rate: number; control: Control | undefined };

async function run({ control, ...wish }: Wish): Promise<number> {
  const { brokenOff, status } = watchSignals();
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  print(`seed ${wish.seed}${control ? `, without a rule: ${control.change}` : ""}`);
  const seen = await runNemesis({
    ...{ ...wish, writes: WRITES, ttlMs: TTL_MS, control, brokenOff },
    ...(control ? { enough: 1 } : {}),
    onFault: (fault, atMs) => print(tellFault(fault, atMs)),
    onProgress: (soFar) => print(tellProgress(soFar)),
  });
  for (const line of summarise(seen, wish)) print(line);
  return seen.failed > 0 ? 1 : status();
}

await runCommand({
  help: HELP,
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string" },
    instances: { type: "string", default: "5" },
    rate: { type: "string", default: "40" },
    without: { type: "string" },
  },
  run(values, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    return run({
      ms: readNumber("minutes", values.minutes, { min: 0.1, max: 10_080, whole: false }) * 60_000,
      seed: readNumber("seed", values.seed ?? String(Date.now() % SEED_MAX), { min: 0, max: SEED_MAX }),
      redirects: readNumber("instances", values.instances, { min: 1, max: 20 }),
      rate: readNumber("rate", values.rate, { min: 1, max: 1000 }),
      control: findControl(values.without),
    });
  },
});
