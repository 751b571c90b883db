// The pool every service talks through. Its promise: a call ends within its deadline, whatever the server does.
// `postgres` has no deadline of its own, and a cancelled query still occupies its connection until the server answers.
// So at the deadline the caller is told, the query is cancelled, and where even that brings no answer within
// CANCEL_GRACE_MS the whole pool is replaced and its sockets are destroyed. A pool that has answered nobody since the
// call began is replaced too: the driver loses a connection for good when the query that opens it is cancelled.
// The driver is patched (patches/): as published, it goes on sending for a transaction whose connection is gone, and so
// ends the process or writes into somebody else's; and it gives the answer of a query that was given up while it waited
// behind another one to the next one, and so on. driver-patch.failure.test.ts has one test for each fault.
import postgres from "postgres";
import { createArrayTypes } from "./array-types.ts";
import { splitEndpoints } from "./endpoints.ts";
import {
  DeadlineExceeded,
  isConnectionLoss,
  isServerError,
  PoolOverloaded,
  wasCancelled,
  wasNeverSent,
} from "./errors.ts";
import { createPlaces } from "./places.ts";
import { createSocketSet } from "./sockets.ts";

/** A round trip to a server that is alive takes milliseconds; half a second without an answer means it is not. */
const CANCEL_GRACE_MS = 500;

/** Seconds between attempts to connect. The driver's own wait grows to 20 s, far beyond the deadline of a call. */
const RECONNECT_MAX_SECONDS = 0.5;

/** Once for a connection that was lost, and once for the echo of that loss (see `wasNeverSent`). */
const ATTEMPTS = 3;

/** bigint columns are sequence numbers, versions and counts: far below 2^53, and refused beyond it. */
const bigint = {
  to: 20,
  from: [20],
  serialize: (value: number) => String(value),
  parse: (text: string) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value)) throw new RangeError("a bigint beyond 2^53 came back from the database");
    return value;
  },
};

export type Sql = postgres.Sql<{ bigint: number }>;
export type TransactionSql = postgres.TransactionSql<{ bigint: number }>;
type Cancellable<T> = Promise<T> & { canceller?: ((query: unknown) => Promise<void>) | null };

export type DatabaseOptions = {
  /** `postgres://user:password@host:port/database`; several `host:port` parted by commas are tried in turn. */
  url: string;
  applicationName: string;
  /** Connections at the most. */
  max: number;
  /** Deadline of a call in ms, unless the call brings its own. */
  queryTimeoutMs: number;
  /** Calls under way or waiting for a connection at the most; one more is refused. Default 1,000. */
  maxPending?: number;
  /**
   * Whether a call may be sent behind another one on the same connection when none is free. It then waits for that one,
   * be it for a lock: only for calls that wait for nobody, of which many come at once. Default false.
   */
  pipelining?: boolean;
  /** Told about each connection that ended and each pool that was replaced, in words for a log. */
  onWarning?: (message: string) => void;
};

export type Database = ReturnType<typeof createDatabase>;

/**
 * Creates a pool; connects lazily. All calls reject with `DeadlineExceeded` at their deadline, with `PoolOverloaded`
 * when too many are waiting, and with the driver's own error otherwise (see `classifyError`).
 */
export function createDatabase(options: DatabaseOptions) {
  const { queryTimeoutMs, maxPending = 1000, onWarning = () => {} } = options;
  const counts = { deadlines: 0, poolsReplaced: 0, connectionsLost: 0, overloaded: 0 };
  let pending = 0;
  let closing = false;
  let pool = openPool();

  function openPool() {
    const { url, endpoints } = splitEndpoints(options.url);
    const sockets = createSocketSet(endpoints);
    const settings = {
      max: options.max,
      connect_timeout: Math.max(1, Math.ceil(queryTimeoutMs / 1000)),
      // Ten minutes: connections move to a new primary or a new pooler some time, without costing anything.
      max_lifetime: 600,
      keep_alive: 10,
      backoff: (failures: number) => Math.min(RECONNECT_MAX_SECONDS, failures * 0.05),
      onnotice: () => {},
      onclose: () => {
        counts.connectionsLost += 1;
        if (!closing) onWarning("a database connection was closed");
      },
      types: { bigint, ...createArrayTypes(bigint.parse) },
      fetch_types: false,
      connection: { application_name: options.applicationName },
      socket: sockets.connectNext,
    };
    const sql = postgres(url, settings) as unknown as Sql;
    const places = createPlaces(options.pipelining ? maxPending : options.max);
    return { sql, sockets, places, answeredAt: 0 };
  }

  /** What still runs in a pool that may only be slow has as long as any call to end. */
  function replacePool(stuck: typeof pool, runningMs: number): void {
    if (stuck !== pool || closing) return;
    counts.poolsReplaced += 1;
    onWarning("the database neither answered nor cancelled a query: all its connections are replaced");
    pool = openPool();
    for (const begin of stuck.places.takeWaiting()) pool.places.enter(begin);
    void destroyPool(stuck, runningMs);
  }

  /** Runs one call under its deadline. `start` gets the pool and returns the query whose result counts. */
  function withDeadline<T>(
    start: (used: typeof pool, leftMs: number) => Cancellable<T>,
    timeoutMs: number,
  ): Promise<T> {
    if (pending >= maxPending) {
      counts.overloaded += 1;
      return Promise.reject(new PoolOverloaded(maxPending));
    }
    pending += 1;
    const enteredAt = performance.now();
    return new Promise<T>((resolve, reject) => {
      let giveUp = () => {
        pending -= 1;
        pool.places.quit(begin);
      };
      const deadline = setTimeout(() => {
        counts.deadlines += 1;
        reject(new DeadlineExceeded(timeoutMs));
        giveUp();
      }, timeoutMs);

      /** Sends it, once there is a place, to the pool that is in use by then. */
      const begin = () => {
        const used = pool;
        const startedAt = performance.now();
        const query = start(used, Math.max(1, Math.ceil(timeoutMs - (startedAt - enteredAt))));
        let settled = false;
        const judgePool = () => {
          if (!settled) replacePool(used, 0);
          else if (used.answeredAt < startedAt) replacePool(used, queryTimeoutMs);
        };
        giveUp = () => {
          setTimeout(judgePool, CANCEL_GRACE_MS).unref();
          cancel(query);
        };
        const settle = (answered: boolean) => {
          pending -= 1;
          settled = true;
          if (answered) used.answeredAt = performance.now();
          clearTimeout(deadline);
          used.places.leave();
        };
        query.then(
          (value) => {
            settle(true);
            resolve(value);
          },
          (error: unknown) => {
            settle(isServerError(error));
            reject(error);
          },
        );
      };
      pool.places.enter(begin);
    });
  }

  /** Repeats a call, within its one deadline, as long as `mayRepeat` says that its error is no answer. */
  async function withRepeats<T>(
    start: (used: typeof pool, leftMs: number) => Cancellable<T>,
    timeoutMs: number,
    mayRepeat: (error: unknown) => boolean,
  ): Promise<T> {
    const endsAt = performance.now() + timeoutMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withDeadline(start, Math.max(1, endsAt - performance.now()));
      } catch (error) {
        if (attempt === ATTEMPTS || !mayRepeat(error) || performance.now() >= endsAt) throw error;
      }
    }
  }

  return {
    /** Runs one statement, which is its own transaction: the promise resolves after its commit. */
    run<T>(statement: (sql: Sql) => Cancellable<T>, timeoutMs = queryTimeoutMs): Promise<T> {
      return withRepeats(({ sql }) => startQuery(statement(sql)), timeoutMs, wasNeverSent);
    },
    /**
     * Runs one statement that changes nothing, and again, within the same deadline, when its connection was lost or it met
     * the cancel of another one.
     */
    read<T>(statement: (sql: Sql) => Cancellable<T>, timeoutMs = queryTimeoutMs): Promise<T> {
      return withRepeats(({ sql }) => startQuery(statement(sql)), timeoutMs, mayReadAgain);
    },
    /** Runs `work` in one transaction; a rejection rolls it back. The server ends each of its statements at the deadline too. */
    transaction<T>(work: (sql: TransactionSql) => Promise<T>, timeoutMs = queryTimeoutMs): Promise<T> {
      return withRepeats(
        ({ sql }, leftMs) =>
          sql.begin(async (tx) => {
            await tx`SELECT set_config('statement_timeout', ${String(leftMs)}, true)`;
            return work(tx);
          }) as Promise<T>,
        timeoutMs,
        wasNeverSent,
      );
    },
    /** Counters and gauges, for the metrics page. */
    stats: () => ({ ...counts, pending, sockets: pool.sockets.size() }),
    /** Lets running queries finish for up to `timeoutMs`, then destroys what is left. Calling it again changes nothing. */
    async close(timeoutMs = 1000): Promise<void> {
      closing = true;
      await pool.sql.end({ timeout: timeoutMs / 1000 });
      pool.sockets.destroyAll();
    },
  };
}

/**
 * The driver's own `cancel` throws away the promise of its attempt, and an attempt that fails, as one towards a server
 * that is going down does, would then end this process as an unhandled rejection. This is the same, with the promise kept.
 */
function cancel(query: Cancellable<unknown>): void {
  const { canceller } = query;
  if (typeof canceller !== "function") return;
  query.canceller = null;
  canceller(query).catch(() => {});
}

const mayReadAgain = (error: unknown) => isConnectionLoss(error) || wasCancelled(error);

/** The driver starts a query when it is awaited; the deadline must not run before it does. */
function startQuery<T>(query: Cancellable<T>): Cancellable<T> {
  if ("execute" in query && typeof query.execute === "function") query.execute();
  return query;
}

type Sockets = ReturnType<typeof createSocketSet>;

async function destroyPool(pool: { sql: Sql; sockets: Sockets }, runningMs: number): Promise<void> {
  await pool.sql.end({ timeout: runningMs / 1000 }).catch(() => {});
  pool.sockets.destroyAll();
}
