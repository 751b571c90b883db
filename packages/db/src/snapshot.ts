// One look at a database that may take minutes, on a connection of its own: whatever happens to it, no pool of calls that
// take milliseconds waits for it. All statements see the same rows. What is read comes as fast as it is taken, and the
// server waits meanwhile.
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { splitEndpoints } from "./endpoints.ts";

export type SnapshotOptions = {
  /** As for a pool. */
  url: string;
  applicationName: string;
  connectTimeoutMs: number;
  /**
   * Deadline of the whole of it, in ms. The server keeps it too, but not while it waits for somebody to take what it has: it
   * sends, and nothing but its end interrupts that.
   */
  timeoutMs: number;
  /** Breaks it off at once: the connection is destroyed. */
  signal: AbortSignal;
};

export type Snapshot = {
  /** Runs a query and returns its rows; numbers wider than 32 bits are texts. */
  rows(text: string): Promise<Record<string, unknown>[]>;
  /** Reads what `COPY ... TO STDOUT` says. `rowCount` is the server's own count, once the stream has ended. */
  copy(text: string): Readable & { rowCount: number };
};

/** What a statement may hold while rows are sorted; beyond it the server uses its disk. */
const WORK_MEM = "16MB";
/** A server that runs a long statement looks this often whether anybody still wants it. */
const LOOK_FOR_CLIENT = "5s";
/** A goodbye that is not heard by then is left unsaid. */
const END_GRACE_MS = 1000;

/** Quotes a text for use in a statement that takes no parameters, as COPY is. */
export const quoteLiteral = pg.escapeLiteral;

/**
 * Takes a snapshot and gives it to `work`. Rejects with what `work` rejects with, with the server's error, with the signal's
 * reason, or with a `TimeoutError` once the deadline has passed. Nothing of it is left at the server afterwards, whatever came of it.
 */
export async function withSnapshot<T>(options: SnapshotOptions, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  options.signal.throwIfAborted();
  const deadline = startDeadline(options.timeoutMs);
  try {
    return await takeSnapshot({ ...options, signal: AbortSignal.any([options.signal, deadline.signal]) }, work);
  } finally {
    deadline.clear();
  }
}

/**
 * A signal that is aborted with a `TimeoutError` after so many ms. Not `AbortSignal.timeout`: one that only `AbortSignal.any`
 * knows is collected as garbage in Node 20, and never comes.
 */
function startDeadline(ms: number) {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(new DOMException(`not done within ${ms} ms`, "TimeoutError")), ms);
  return { signal: over.signal, clear: () => clearTimeout(timer) };
}

async function takeSnapshot<T>(options: SnapshotOptions, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const { timeoutMs, signal } = options;
  const { client, socket } = await connectFirst(options);
  const breakOff = () => socket.destroy();
  signal.addEventListener("abort", breakOff);
  try {
    signal.throwIfAborted();
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    // One connection at a time is what it may take of the server: no helpers, and no compiling. A server may end whoever is
    // idle within a transaction, as a reader seems to be that has not taken yet what was sent: the deadline is this one's end.
    await client.query(`
      SELECT set_config('statement_timeout', '${Math.ceil(timeoutMs)}', true), set_config('timezone', 'UTC', true),
             set_config('idle_in_transaction_session_timeout', '${Math.ceil(timeoutMs)}', true),
             set_config('client_connection_check_interval', '${LOOK_FOR_CLIENT}', true),
             set_config('work_mem', '${WORK_MEM}', true), set_config('jit', 'off', true),
             set_config('max_parallel_workers_per_gather', '0', true)`);
    return await work({
      rows: async (text) => (await client.query(text)).rows as Record<string, unknown>[],
      copy: (text) => client.query(copyTo(text)),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", breakOff);
    const late = setTimeout(breakOff, END_GRACE_MS);
    // With a statement under way this destroys the connection.
    await client.end().catch(() => {});
    clearTimeout(late);
    socket.destroy();
  }
}

/** Connects to the first of the servers that the URL names and that answers. Rejects with the last one's error. */
async function connectFirst({ url, applicationName, connectTimeoutMs }: SnapshotOptions) {
  let failure: unknown;
  for (const each of splitEndpoints(url).urls) {
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: each,
      application_name: applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      stream: () => socket,
    });
    // Without a listener a lost connection would end the process; what waits for it rejects anyway.
    client.on("error", () => {});
    try {
      await client.connect();
      return { client, socket };
    } catch (error) {
      socket.destroy();
      failure = error;
    }
  }
  throw failure;
}
