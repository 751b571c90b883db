// The only file that listens. A notification says "look now" and nothing else: it may be lost, doubled, late or forged.
//
// One subscriber lives exactly as long as its connection. The library's own reconnecting is switched off, because it
// gives up after three seconds, cannot see a peer that went silent, and does not retry a failed first connect; here a
// connection that fails or falls silent is destroyed and a new one is made, for ever, ever more slowly. Silence is
// found by a question to ourselves: a notification on a channel of our own must come back, which also finds a pooler in
// transaction mode, where LISTEN is accepted and nothing ever arrives.
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import pgListen from "pg-listen";

export type WakeTiming = {
  /** How often the question is asked, and how long its answer may take. A dead connection is found within their sum. */
  probeIntervalMs: number;
  probeTimeoutMs: number;
  connectTimeoutMs: number;
  /** First and longest pause before a new attempt; each is shortened by up to half, so that many do not return at once. */
  backoffMs: { first: number; longest: number };
};

const TIMING: WakeTiming = {
  probeIntervalMs: 5000,
  probeTimeoutMs: 2000,
  connectTimeoutMs: 3000,
  backoffMs: { first: 250, longest: 5000 },
};

/** `deaf`: LISTEN was accepted and the notification to ourselves never came. */
export type WakeState = "starting" | "listening" | "deaf" | "down" | "stopped";

export type WakeOptions = {
  /** A direct connection: LISTEN does not work through a pooler in transaction mode. */
  url: string;
  channels: readonly string[];
  /** Called for each notification with its channel, and with null when listening (again): something may have been missed. */
  onWake: (channel: string | null) => void;
  onState: (state: WakeState, reason: string) => void;
  /** Random number in [0, 1) for the pauses. */
  random: () => number;
  /** Default: a question every 5 s, 2 s for its answer, 3 s to connect. */
  timing?: WakeTiming;
};

export type Wake = ReturnType<typeof createWake>;

/** Starts listening at once, in the background, until `stop`. Never throws and never ends by itself. */
export function createWake(options: WakeOptions) {
  const { channels, onWake, onState, random, timing = TIMING } = options;
  const { first, longest } = timing.backoffMs;
  let state: WakeState = "starting";
  let heard = false;
  let reconnects = 0;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let current = open();

  function setState(next: WakeState, reason: string): void {
    if (state === next) return;
    state = next;
    if (next === "listening") heard = true;
    onState(next, reason);
  }

  /** Ends the current connection, and makes the next after a pause. Late calls of an ended connection change nothing. */
  function retire(failed: typeof current, next: "deaf" | "down", reason: string): void {
    if (failed !== current || state === "stopped") return;
    current.end();
    setState(next, reason);
    const pause = Math.min(longest, first * 2 ** Math.min(failures, 10)) * (1 - random() / 2);
    failures += 1;
    reconnects += 1;
    timer = setTimeout(() => {
      current = open();
    }, pause);
  }

  function open() {
    const connection = openConnection(options.url, {
      channels,
      timing,
      onNotification: onWake,
      onHeard: () => {
        if (connection !== current || state === "stopped") return;
        failures = 0;
        setState("listening", "the notification to ourselves came back");
      },
      onListening: () => {
        if (connection === current && state !== "stopped") onWake(null);
      },
      onFailure: (kind, reason) => retire(connection, kind, reason),
    });
    return connection;
  }

  return {
    state: () => state,
    /** True when LISTEN is accepted but mute, and never worked so far: a wrong connection string, most likely. */
    misconfigured: () => state === "deaf" && !heard,
    stats: () => ({ reconnects }),
    stop(): void {
      clearTimeout(timer);
      state = "stopped";
      current.end();
    },
  };
}

type ConnectionHooks = {
  channels: readonly string[];
  timing: WakeTiming;
  onNotification: (channel: string) => void;
  onListening: () => void;
  onHeard: () => void;
  onFailure: (kind: "deaf" | "down", reason: string) => void;
};

function openConnection(url: string, hooks: ConnectionHooks) {
  const { probeIntervalMs, probeTimeoutMs, connectTimeoutMs } = hooks.timing;
  const probeChannel = `linkfence_probe_${randomBytes(8).toString("hex")}`;
  const socket = new Socket();
  let ended = false;
  let probe: NodeJS.Timeout | undefined;
  // A limit of one attempt means none: the library reports the loss instead of reconnecting.
  const subscriber = pgListen.default(
    {
      connectionString: url,
      stream: () => socket,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: probeTimeoutMs,
      application_name: "linkfence-listen",
    },
    { retryLimit: 1, paranoidChecking: false, parse: (text) => text, serialize: (text: string) => text },
  );

  function fail(kind: "deaf" | "down", error: unknown): void {
    if (!ended) hooks.onFailure(kind, error instanceof Error ? error.message : String(error));
  }

  /** Deaf is who answers and delivers nothing. Who does not answer either is away, which says nothing of a pooler. */
  function ask(): void {
    let answered = false;
    probe = setTimeout(() => {
      if (answered) fail("deaf", "a notification to ourselves did not come back");
      else fail("down", "the server stopped answering");
    }, probeTimeoutMs);
    subscriber.notify(probeChannel, "").then(
      () => {
        answered = true;
      },
      (error: unknown) => fail("down", error),
    );
  }

  subscriber.events.on("error", (error) => fail("down", error));
  subscriber.events.on("notification", ({ channel }) => {
    if (ended) return;
    if (channel !== probeChannel) {
      hooks.onNotification(channel);
      return;
    }
    clearTimeout(probe);
    hooks.onHeard();
    probe = setTimeout(ask, probeIntervalMs);
  });

  async function start(): Promise<void> {
    await subscriber.connect();
    for (const channel of [...hooks.channels, probeChannel]) await subscriber.listenTo(channel);
    if (ended) return;
    hooks.onListening();
    ask();
  }
  start().catch((error: unknown) => fail("down", error));

  return {
    end(): void {
      ended = true;
      clearTimeout(probe);
      subscriber.close().catch(() => {});
      // A polite goodbye needs a peer that answers. This one may not.
      setImmediate(() => socket.destroy());
    },
  };
}
