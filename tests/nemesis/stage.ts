// What a run plays on: a server of its own, write processes and redirect processes, each of which reaches the server by
// lines of its own that can be broken.
import {
  type FaultProxy,
  findFreePorts,
  makeAdminKey,
  startFaultProxy,
  WITHOUT_STATISTICS,
  waitUntilReady,
} from "@linkfence/testkit";
import { type OwnServer, startOwnServer } from "../evidence/own-server.ts";
import { type Actor, startActor } from "./actor.ts";

/**
 * Deadlines of database calls, as by default. The machine is busy with ten processes, and what is not answered in time is
 * asked again.
 */
export const WRITE_QUERY_MS = 2000;
const REDIRECT_QUERY_MS = 1000;
/** Four for each redirect process, and what two busy write processes have; also while some are cut off and not noticed yet. */
const MAX_CONNECTIONS = "100";

export type Redirect = { name: string; actor: Actor; query: FaultProxy; listen: FaultProxy };
export type Write = { name: string; actor: Actor; database: FaultProxy };
export type Stage = {
  server: OwnServer;
  redirects: readonly Redirect[];
  writes: readonly Write[];
  adminKey: string;
  /** Waits until everybody is ready. */
  ready(): Promise<void>;
};

export type StageOptions = {
  redirects: number;
  writes: number;
  ttlMs: number;
  /** Takes how to undo what was opened. */
  later: (close: () => unknown) => void;
  /** Done before any process starts. */
  prepare: (server: OwnServer) => unknown;
  /** Told when a process has ended that nobody ended. */
  onLoss: (what: string) => void;
};

/** Sets it up. Rejects where a part does not start. */
export async function setStage({
  redirects: count,
  writes,
  ttlMs,
  later,
  prepare,
  onLoss,
}: StageOptions): Promise<Stage> {
  const server = await startOwnServer("main", { max_connections: MAX_CONNECTIONS });
  later(server.close);
  await prepare(server);
  const adminKey = await makeAdminKey(server.url);
  // Below the ports that systems hand out by themselves: nobody gets one while its process is away.
  const firstPort = await findFreePorts(count + writes);
  const CACHE_TTL_MS = String(ttlMs);

  const openLine = async () => {
    const proxy = await startFaultProxy(server.port);
    later(proxy.close);
    return proxy;
  };
  const start = async (service: "redirect" | "write", name: string, port: number, env: Record<string, string>) => {
    const settings = { ...WITHOUT_STATISTICS, CACHE_TTL_MS, PORT: String(port), ...env };
    const actor = await startActor(service, settings, (exit) => onLoss(`${name} ended by itself: ${exit}`));
    later(actor.end);
    return actor;
  };

  async function addRedirect(index: number): Promise<Redirect> {
    const [query, listen] = [await openLine(), await openLine()];
    const name = `redirect ${index}`;
    const actor = await start("redirect", name, firstPort + index, {
      DATABASE_URL: query.through(server.url),
      LISTEN_DATABASE_URL: listen.through(server.url),
      QUERY_TIMEOUT_MS: String(REDIRECT_QUERY_MS),
    });
    return { name, actor, query, listen };
  }

  async function addWrite(index: number): Promise<Write> {
    const database = await openLine();
    const name = `write ${index}`;
    const actor = await start("write", name, firstPort + count + index, {
      DATABASE_URL: database.through(server.url),
      QUERY_TIMEOUT_MS: String(WRITE_QUERY_MS),
    });
    return { name, actor, database };
  }

  const stage = {
    server,
    redirects: await Promise.all(Array.from({ length: count }, (_, index) => addRedirect(index))),
    writes: await Promise.all(Array.from({ length: writes }, (_, index) => addWrite(index))),
    adminKey,
    async ready(): Promise<void> {
      await Promise.all([...stage.redirects, ...stage.writes].map(({ actor }) => waitUntilReady(actor.service())));
    },
  };
  await stage.ready();
  return stage;
}
