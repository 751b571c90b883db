// Several servers under the same load, in turn: each round asks all of them, in the other order than the round before, so
// that whatever the machine does meanwhile meets all alike. What is told are ratios within a round. All meet the same
// background: a measurement begins when what is behind the servers rests, so that what one has left to be stored, and what
// the database does about it, is not the next one's. What runs beside it is then what its own answers bring.

import { judgeShares, SERVER_WAS, type Shares, type Verdict } from "./bottleneck.ts";
import { type Cores, type CoreTime, readCoreTimes } from "./cores.ts";
import { cpuOf, cpuOfServer } from "./cpu-time.ts";
import { type Load, type LoadResult, runLoad } from "./load/load.ts";
import { waitForRest } from "./rest.ts";

export type Target = {
  name: string;
  port: number;
  pid: number;
  /** Whether processes that it has started do its work. */
  hasWorkers?: boolean;
  /** What is measured where that is no load on a port. */
  run?: (seconds: number) => Promise<LoadResult>;
  /** Goes along with each measurement, such as what fills its background; told when the load has ended. */
  beside?: (load: { seconds: number }) => Promise<void>;
  /** Waits until whatever the load has left is done, so that it is not the next one's. */
  settle?: () => Promise<void>;
};

export type Rounds = {
  program: "wrk" | "client";
  cores: Cores;
  /** Cores that the servers may use, where that is more than one. */
  on?: readonly number[];
  /** Measured rounds, and how long each server is asked in each. */
  rounds: number;
  seconds: number;
  load: Omit<Load, "port" | "seconds">;
  /** Whether only the server may be the limit. Of a given rate nothing is, and of a cold cache its database may be. */
  onlyServer: boolean;
  /** How often a server is asked anew in a round where others used the machine meanwhile. */
  tries: number;
  /** Processes behind the servers, on the load's core: they are part of the benchmark. */
  background: { servers: readonly (number | undefined)[]; processes: readonly number[] };
  tell: (text: string) => void;
};

export type Measured = {
  rate: number[];
  /** In ms. */
  p50: number[];
  p99: number[];
  /** Part of the load's core that was in use, by whomever. */
  loadCore: number[];
  verdicts: Verdict[];
  answered: number;
};

/** Code is compiled within the first seconds of a load. */
const WARM_UP_SECONDS = 2;

const ask = ({ program, load }: Rounds, target: Target, seconds: number) =>
  target.run ? target.run(seconds) : runLoad(program, { ...load, port: target.port, seconds });

/** Measures all of them. Returns, by name, what each round came to. */
export async function measureRounds(of: Rounds, targets: readonly Target[]): Promise<Map<string, Measured>> {
  const all = new Map<string, Measured>();
  for (const target of targets) {
    all.set(target.name, { rate: [], p50: [], p99: [], loadCore: [], verdicts: [], answered: 0 });
    const { answered } = await ask(of, target, WARM_UP_SECONDS);
    count(all, target, answered);
    await target.settle?.();
  }
  for (let round = 0; round < of.rounds; round += 1) {
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const measured = await measureCalm(of, target, (answered) => count(all, target, answered));
      const { rate, p50, p99, loadCore, verdicts } = all.get(target.name) as Measured;
      rate.push(measured.result.rate);
      p50.push(measured.result.p50);
      p99.push(measured.result.p99);
      loadCore.push(measured.shares.loadCore);
      verdicts.push(measured.verdict);
      of.tell(
        `round ${round + 1} of ${of.rounds}, ${target.name}: ${Math.round(measured.result.rate)}/s, p99 ${measured.result.p99.toFixed(2)} ms; ` +
          `server ${percent(measured.shares.server)}, load ${percent(measured.loadShare)}, the load's core ${percent(measured.shares.loadCore)}, ` +
          `others ${percent(measured.shares.foreign)}, stolen ${percent(measured.shares.steal)}`,
      );
    }
  }
  return all;
}

const percent = (share: number) => `${Math.round(share * 100)} %`;

function count(all: Map<string, Measured>, target: Target, answered: number): void {
  const measured = all.get(target.name);
  if (measured) measured.answered += answered;
}

async function measureCalm(of: Rounds, target: Target, told: (answered: number) => void) {
  for (let attempt = 1; ; attempt += 1) {
    await waitForRest(() => cpuOfBackground(of.background, target), of.tell);
    const measured = await measureOnce(of, target);
    told(measured.result.answered);
    await target.settle?.();
    if (measured.verdict !== "others used the machine" || attempt >= of.tries) return measured;
    of.tell(
      `${target.name}: others took ${percent(measured.shares.foreign)} of a core, ${percent(measured.shares.steal)} was stolen: measured again`,
    );
  }
}

async function measureOnce(of: Rounds, target: Target) {
  const before = await readUse(of, target);
  const [result] = await Promise.all([ask(of, target, of.seconds), target.beside?.({ seconds: of.seconds })]);
  const after = await readUse(of, target);
  const shares = sharesOf(result, before, after);
  const judged = judgeShares(shares);
  const counts = of.onlyServer || judged === "others used the machine";
  return { result, shares, loadShare: result.cpuMs / result.ms, verdict: counts ? judged : SERVER_WAS } as const;
}

/** ms of processors since their start; of the cores that are watched, the load's first. */
type Use = { at: number; server: number; background: number; core: CoreTime[] };

async function readUse({ cores, on = [cores.server], background }: Rounds, target: Target): Promise<Use> {
  const times = await readCoreTimes();
  const none = { busy: 0, stolen: 0 };
  return {
    at: performance.now(),
    server: await (target.hasWorkers ? cpuOfServer(target.pid) : cpuOf(target.pid)),
    background: (await cpuOfBackground(background, target)) + (await cpuOf(process.pid)),
    core: [cores.load, ...on.filter((core) => core !== cores.load)].map((core) => times.get(core) ?? none),
  };
}

/** ms of processors of what is behind a server, and of the other servers, which idle meanwhile. */
async function cpuOfBackground({ servers, processes }: Rounds["background"], target: Target): Promise<number> {
  const used = await Promise.all([
    ...servers.filter((pid) => pid !== target.pid).map((pid) => cpuOfServer(pid)),
    ...processes.filter((pid) => pid !== target.pid).map((pid) => cpuOf(pid)),
  ]);
  return used.reduce((sum, ms) => sum + ms, 0);
}

function sharesOf(result: LoadResult, before: Use, after: Use): Shares {
  const ms = after.at - before.at;
  const busy = after.core.map((core, i) => core.busy - (before.core[i]?.busy ?? 0));
  const stolen = after.core.reduce((sum, core, i) => sum + core.stolen - (before.core[i]?.stolen ?? 0), 0);
  const server = after.server - before.server;
  const own = server + result.cpuMs + after.background - before.background;
  return {
    server: server / result.ms,
    loadCore: (busy[0] ?? 0) / ms,
    foreign: Math.max(0, busy.reduce((sum, each) => sum + each, 0) - own) / ms,
    steal: stolen / ms,
  };
}
