// The one command: an embedded PostgreSQL, its migrations, the first admin key, the three services; and all of it down
// again, in the opposite order, on a signal or when any part of it dies.
import { join } from "node:path";
import { migrate } from "@linkfence/db/migrate";
import { type LocalPostgres, LocalPostgresError, makeDirectories, startLocalPostgres } from "@linkfence/local-postgres";
import { ConfigError, redact } from "@linkfence/service-shell";
import { ensureAdminKey } from "./start/admin-key.ts";
import { banner } from "./start/banner.ts";
import { type Child, type ChildExit, startChild } from "./start/child.ts";
import { ensureIngestSecret } from "./start/ingest-secret.ts";
import { tellOfLeftSpools } from "./start/left-spools.ts";
import { findTakenPorts } from "./start/ports.ts";
import { planStart, type StartPlan } from "./start/settings.ts";

/** sysexits.h: EX_CONFIG. */
const EXIT = { failed: 1, config: 78 };

const say = (line: string) => process.stdout.write(`${line}\n`);
const complain = (line: string) => process.stderr.write(`linkfence: ${redact(line)}\n`);

const children: Child[] = [];
/** Under way or done: a signal that comes while it starts waits for it, and then stops it. */
let postgres: Promise<LocalPostgres> | null = null;
let stopping: Promise<void> | null = null;

/** Stops what runs. The redirects hand their last clicks to an ingest that still lives, which stops after all others. */
async function stopEverything(): Promise<void> {
  const isIngest = ({ name }: Child) => name === "click-ingest";
  await Promise.all(children.filter((child) => !isIngest(child)).map(stopChild));
  await Promise.all(children.filter(isIngest).map(stopChild));
  const server = await postgres?.catch(() => null);
  await server?.stop();
}

async function stopChild(child: Child): Promise<void> {
  const { code, signal } = await child.stop();
  if (code !== 0) complain(`${child.name} ended with ${signal ?? `status ${code}`}`);
}

function stop(why: string, status: number): Promise<void> {
  stopping ??= (async () => {
    const started = postgres !== null || children.length > 0;
    if (started) say(`linkfence: ${why}, stopping`);
    await stopEverything().catch((error: unknown) => complain(`stopping: ${describe(error)}`));
    if (started) say("linkfence: stopped");
    process.exit(status);
  })();
  return stopping;
}

/** Signals of one wish come within milliseconds of each other; a person who loses patience takes longer than this. */
const ONE_WISH_MS = 1000;
let stoppingSince = 0;

function onSignal(signal: NodeJS.Signals): void {
  if (stopping === null) {
    stoppingSince = performance.now();
    void stop(signal, 0);
    return;
  }
  // A closing terminal hangs up more than once, and one Ctrl-C comes twice under npm: from the terminal, and passed on by
  // npm. Only a person who asks again means it.
  if (signal === "SIGHUP" || performance.now() - stoppingSince < ONE_WISH_MS) return;
  complain(`${signal} again, stopping at once`);
  for (const child of children) child.kill();
}

async function startDatabases(plan: StartPlan): Promise<Record<"DATABASE_URL" | "STATS_DATABASE_URL", string>> {
  const { DATABASE_URL, STATS_DATABASE_URL } = plan.config;
  let embedded: LocalPostgres | null = null;
  if (DATABASE_URL === undefined || STATS_DATABASE_URL === undefined) {
    postgres = startLocalPostgres({
      dataDir: join(plan.dataDir, "postgres"),
      databases: ["linkfence", "linkfence_stats"],
      logger: { info: say, warn: complain, error: complain },
    });
    embedded = await postgres;
    void embedded.exited.then(() => stop("the embedded PostgreSQL ended", EXIT.failed));
  }
  const main = DATABASE_URL ?? embedded?.url("linkfence") ?? "";
  const stats = STATS_DATABASE_URL ?? embedded?.url("linkfence_stats") ?? "";
  for (const [url, name] of [
    [main, "main"],
    [stats, "stats"],
  ] as const) {
    const done = await migrate(url, name);
    if (done.length > 0) say(`linkfence: ${name} database: ran ${done.join(", ")}`);
  }
  return { DATABASE_URL: main, STATS_DATABASE_URL: stats };
}

async function startServices(plan: StartPlan, shared: Record<string, string>): Promise<void> {
  for (const service of plan.services) {
    if (stopping) return;
    const child = startChild(service, shared, (line) => say(`[${service.name}] ${line}`));
    children.push(child);
    void child.exited.then(onChildExit);
    await child.waitUntilReady();
  }
}

function onChildExit({ name, code, signal }: ChildExit): void {
  if (stopping) return;
  if (signal === null) complain(`${name} ended with status ${code}: its last lines above say why`);
  else
    complain(`${name} ended with ${signal}, which came from outside: from somebody, or from a system short of memory`);
  void stop(`${name} is gone`, code === EXIT.config ? EXIT.config : EXIT.failed);
}

async function main(): Promise<void> {
  const plan = planStart(process.env);
  const taken = await findTakenPorts(plan.services.flatMap(({ port, opsPort }) => [port, opsPort]));
  if (taken.length > 0) throw new Error(portsTaken(taken));
  await makeDirectory("LINKFENCE_DATA_DIR", plan.dataDir);
  const spoolSetting = plan.config.CLICK_SPOOL_DIR === undefined ? "LINKFENCE_DATA_DIR" : "CLICK_SPOOL_DIR";
  const spools = plan.services.flatMap(({ env }) => env.CLICK_SPOOL_DIR ?? []);
  for (const path of spools) await makeDirectory(spoolSetting, path);
  await tellOfLeftClicks(plan);
  const databases = await startDatabases(plan);
  const key = await ensureAdminKey(databases.DATABASE_URL, join(plan.dataDir, "admin-key"));
  const secret = await ensureIngestSecret(process.env, join(plan.dataDir, "click-ingest-secret"));
  await startServices(plan, { ...databases, ...secret });
  if (!stopping) say(banner(plan, key));
}

/** Says it at once: nothing else does. A directory that cannot be read is no reason not to start. */
async function tellOfLeftClicks({ spoolDir, services }: StartPlan): Promise<void> {
  const used = services.flatMap(({ env }) => (env.CLICK_SPOOL === "off" ? [] : (env.CLICK_SPOOL_DIR ?? [])));
  const told = await tellOfLeftSpools(spoolDir, used).catch((error: unknown) => [describe(error)]);
  for (const line of told) complain(line);
}

async function makeDirectory(setting: string, path: string): Promise<void> {
  try {
    await makeDirectories(path);
  } catch (error) {
    throw new ConfigError([`${setting} cannot be made: ${describe(error)}`]);
  }
}

function portsTaken(taken: readonly number[]): string {
  const which = taken.length === 1 ? `port ${taken[0]} is` : `ports ${taken.join(", ")} are`;
  return `${which} taken, by another linkfence perhaps: stop what listens there, or set LINKFENCE_PORT_BASE`;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// Whoever read the output has gone away, as `head` does, or a terminal.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => void stop("nobody reads on", 0));
process.on("SIGINT", onSignal).on("SIGTERM", onSignal).on("SIGHUP", onSignal);
try {
  await main();
} catch (error) {
  // What fails because it is being stopped is no news.
  if (stopping === null) complain(describe(error));
  const refused = error instanceof ConfigError || error instanceof LocalPostgresError;
  await stop("cannot start", refused ? EXIT.config : EXIT.failed);
}
