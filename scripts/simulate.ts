// Runs the simulator of acknowledged revocation for as long as one likes. The tests run it, too, for a while.
import { runSchedules, tellSchedule } from "../tests/simulation/run.ts";
import { PRODUCT, TWINS, type Twin } from "../tests/simulation/twins.ts";
import { readNumber, runCommand, UsageError } from "./command.ts";

const HELP = `Simulates redirect and write processes of the product on a model of its database: late, lost and doubled
messages, processes that stop, clocks that differ, servers that crash and standbys that take over. Judges by true time
whether a revoked link was answered with its old target after it was confirmed. One seed decides everything.

Usage: pnpm simulate [--seeds <n>] [--seed <seed>] [--twin <name>] [--enough <n>] [--history]

  --seeds <n>    how many schedules (1 to 1000000000); 100000 unless it says otherwise
  --seed <seed>  the first one (0 to 4294967295); chosen anew each time unless it says otherwise, and printed;
                 --from is the same
  --twin <name>  takes a rule out first: ${TWINS.map(({ name }) => name).join(", ")}
  --enough <n>   ends when so many seeds have failed (1 to 1000000000); 1 unless it says otherwise
  --history      prints all that happens in the schedule of the first seed, and runs no other

Exit status: 0 every schedule held, 1 one did not, 64 wrong arguments.
`;
const MANY = 1_000_000_000;
const SEED_MAX = 2 ** 32 - 1;
const PROGRESS_EVERY = 10_000;

function findTwin(wanted: string | undefined): Twin {
  if (wanted === undefined) return PRODUCT;
  const twin = TWINS.find(({ name }) => name === wanted);
  if (!twin) throw new UsageError(`no twin ${wanted}: there are ${TWINS.map(({ name }) => name).join(", ")}`);
  return twin;
}

async function tell(from: number, twin: Twin): Promise<number> {
  const { history, violations } = await tellSchedule(from, twin);
  process.stdout.write(`${[...history, ...violations].join("\n")}\n`);
  return violations.length === 0 ? 0 : 1;
}

async function simulate(options: { from: number; count: number; twin: Twin; enough: number }): Promise<number> {
  const { from, count, twin } = options;
  process.stdout.write(`${count} schedules from seed ${from} on, ${twin.name}: ${twin.change}\n`);
  const begun = performance.now();
  const onProgress = (ended: number, failed: number) => {
    if (ended % PROGRESS_EVERY === 0) process.stderr.write(`${ended} schedules, ${failed} failed\n`);
  };
  const { schedules, steps, found, tally } = await runSchedules({ ...options, onProgress });
  const minutes = (performance.now() - begun) / 60_000;
  const without = twin === PRODUCT ? "" : ` --twin ${twin.name}`;
  for (const [what, times] of [...tally].sort(([a], [b]) => (a < b ? -1 : 1)))
    process.stdout.write(`${String(times).padStart(10)} ${what}\n`);
  for (const { seed, violations } of found)
    process.stdout.write(`FAIL pnpm simulate --seed ${seed}${without} --history: ${violations.join("; ")}\n`);
  const pace = `${Math.round(schedules / minutes)} a minute, ${Math.round(steps / schedules)} steps each`;
  process.stdout.write(`${schedules} schedules, ${found.length} failed, ${pace}\n`);
  return found.length === 0 ? 0 : 1;
}

await runCommand({
  help: HELP,
  options: {
    seeds: { type: "string", default: "100000" },
    seed: { type: "string" },
    from: { type: "string" },
    twin: { type: "string" },
    enough: { type: "string", default: "1" },
    history: { type: "boolean", default: false },
  },
  run(values, [name]) {
    if (name !== undefined) throw new UsageError(`unknown argument ${name}`);
    const count = readNumber("seeds", values.seeds, { min: 1, max: MANY });
    if (values.seed !== undefined && values.from !== undefined)
      throw new UsageError("--seed and --from are the same: keep one");
    const from = readNumber("seed", values.seed ?? values.from ?? String(Date.now() % SEED_MAX), {
      min: 0,
      max: SEED_MAX,
    });
    const enough = readNumber("enough", values.enough, { min: 1, max: MANY });
    const twin = findTwin(values.twin);
    return values.history ? tell(from, twin) : simulate({ from, count, twin, enough });
  },
});
