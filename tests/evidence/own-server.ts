// An embedded server of a case's own, with one database: to be stopped, killed, frozen, or copied into a standby.
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createArrayTypes } from "@linkfence/db";
import { migrate } from "@linkfence/db/migrate";
import { createProcessTable, type LocalPostgres, startLocalPostgres } from "@linkfence/local-postgres";
import { findFreePorts, waitFor } from "@linkfence/testkit";
import postgres from "postgres";

const DATABASE = "linkfence";
/** What a redirect or two and a test need; a standby needs as many as its primary. */
const SETTINGS = { max_connections: "50" };

export type OwnServer = Awaited<ReturnType<typeof runServer>>;

/** Starts a server on a new cluster and migrates its database. `close` ends it and removes the cluster. */
export async function startOwnServer(
  kind: "main" | "stats" = "main",
  settings: Readonly<Record<string, string>> = {},
): Promise<OwnServer> {
  const server = await runServer(await makeDirectory(), { databases: [DATABASE], settings });
  await migrate(server.url, kind);
  return server;
}

/**
 * Starts a standby of a server, on a copy of its cluster; the server is stopped for the copy and started again.
 * @param sourcePort where on loopback the standby finds its primary, such as a proxy's port
 */
export async function startStandby(primary: OwnServer, sourcePort: number): Promise<OwnServer> {
  await primary.stop();
  const directory = await makeDirectory();
  await cp(primary.directory, directory, { recursive: true });
  await primary.start();
  const { username, password } = new URL(primary.url);
  const cluster = join(directory, "cluster");
  const source = `host=127.0.0.1 port=${sourcePort} user=${username} password=${decodeURIComponent(password)}`;
  // A file of the server's own, not its command line, which every user of the machine can read.
  await writeFile(join(cluster, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`, { mode: 0o600 });
  await writeFile(join(cluster, "standby.signal"), "");
  return runServer(directory, {});
}

/** Room for a cluster and its password file; the server itself runs under an account of its own, where we are root. */
function makeDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "linkfence-evidence-"));
}

type Options = { databases?: readonly string[]; settings?: Readonly<Record<string, string>> };

async function runServer(directory: string, { settings = {}, ...options }: Options) {
  const start = (port: number): Promise<LocalPostgres> =>
    startLocalPostgres({ dataDir: directory, port, settings: { ...SETTINGS, ...settings }, ...options });
  // Below the ports that systems hand out by themselves: nobody gets it while the server is away.
  const port = await findFreePorts(1);
  let server = await start(port);
  const url = server.url(DATABASE);
  // The types of arrays are stated: a server that ends while the driver asks for them leaves an error nobody can catch.
  const types = createArrayTypes(Number);
  const sql = postgres(url, { max: 4, types, fetch_types: false, onnotice: () => {}, backoff: () => 0.05 });
  let frozen: number[] = [];

  function thaw(): void {
    for (const pid of frozen.splice(0)) signal(pid, "SIGCONT");
  }
  // A frozen process could not be ended by whoever breaks the run off.
  process.once("exit", thaw);

  return {
    directory,
    port,
    url,
    /** Connections of the test's own. They are lost with the server, and made anew. */
    sql,
    stop: () => server.stop(),
    /** Ends every process of it without a chance to say goodbye; whoever is connected is cut off. */
    async kill(): Promise<void> {
      for (const pid of await processesOf(server)) signal(pid, "SIGKILL");
      await server.exited;
    },
    /**
     * Ends one of the processes that serve the product, as the system does when memory is short: the server ends all others.
     * Waits for a server that answers and is in use.
     */
    async killWorker(): Promise<void> {
      const find = () => sql<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'linkfence%' ORDER BY random() LIMIT 1`;
      const pid = await waitFor("a worker to kill", async () => (await find().catch(() => []))[0]?.pid);
      signal(pid, "SIGKILL");
    },
    /** Resolves when it answers again. */
    answering: () => waitFor("the server to answer", () => sql`SELECT 1`.then(() => true).catch(() => false)),
    /** The last lines of its log, since its start. */
    log: () => server.serverLog(),
    /** Starts it again, where it was. */
    async start(): Promise<void> {
      server = await start(port);
    },
    /** Stops every process of it where it stands: the system goes on accepting connections, and nobody answers. */
    async freeze(): Promise<void> {
      // The main process first: after it, nobody makes new ones.
      signal(server.pid, "SIGSTOP");
      frozen = await processesOf(server);
      for (const pid of frozen) signal(pid, "SIGSTOP");
    },
    thaw,
    async close(): Promise<void> {
      thaw();
      process.off("exit", thaw);
      await sql.end({ timeout: 1 });
      await server.stop();
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** The main process of a server and then its children. */
async function processesOf({ pid: main }: LocalPostgres): Promise<number[]> {
  const processes = await createProcessTable().list();
  return [main, ...processes.filter(({ parentPid }) => parentPid === main).map(({ pid }) => pid)];
}

/** To a process that may have ended by itself. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
