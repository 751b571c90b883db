// The listener against a real server, through proxies that break the connection in every way a network does.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createTestDatabase,
  type FaultProxy,
  startFaultProxy,
  startPooler,
  type TestDatabase,
  until,
} from "@linkfence/testkit";
import pgListen from "pg-listen";
import { createWake, type Wake, type WakeState } from "./wake.ts";

/** As in service, at a twentieth of the time. */
const TIMING = {
  probeIntervalMs: 100,
  probeTimeoutMs: 200,
  connectTimeoutMs: 300,
  backoffMs: { first: 10, longest: 80 },
};

let database: TestDatabase;
let proxy: FaultProxy;
const undos: (() => unknown)[] = [];

beforeAll(async () => {
  database = await createTestDatabase("empty");
});
afterAll(() => database.drop());
beforeEach(async () => {
  proxy = await startFaultProxy(Number(new URL(database.url).port));
});
afterEach(async () => {
  for (const undo of undos.splice(0)) await undo();
  await proxy.close();
});

type Seen = { wakes: (string | null)[]; states: WakeState[] };

/** Starts a listener and records what it says; `next` resolves with the next thing it says that matches. */
function listen(url: string) {
  const seen: Seen = { wakes: [], states: [] };
  const waiting = new Set<() => void>();
  const tell = () => {
    for (const look of waiting) look();
  };
  const wake = createWake({
    url,
    channels: ["link_change", "link_created"],
    random: Math.random,
    timing: TIMING,
    onWake: (channel) => {
      seen.wakes.push(channel);
      tell();
    },
    onState: (state) => {
      seen.states.push(state);
      tell();
    },
  });
  undos.push(() => wake.stop());

  function next(matches: (later: Seen) => boolean): Promise<void> {
    const from = { wakes: seen.wakes.length, states: seen.states.length };
    return new Promise((resolve) => {
      const look = () => {
        if (!matches({ wakes: seen.wakes.slice(from.wakes), states: seen.states.slice(from.states) })) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
    });
  }
  const state = (wanted: WakeState) =>
    wake.state() === wanted ? Promise.resolve() : next(({ states }) => states.includes(wanted));
  return { wake, seen, next, state };
}

const notify = (channel: string, payload = "") => database.sql`SELECT pg_notify(${channel}, ${payload})`;

/**
 * Sends notifications until one has come. One that is lost with its connection costs nothing: whoever listens anew is
 * told to look, and that is waited for here, too.
 */
async function expectToHear({ next, state, seen }: ReturnType<typeof listen>): Promise<void> {
  await state("listening");
  for (let last: string | null | undefined; last !== "link_change"; last = seen.wakes.at(-1)) {
    const told = next(({ wakes }) => wakes.length > 0);
    await notify("link_change", "1");
    await told;
  }
}

describe("a listener", () => {
  test("hears its channels and no other, and looks once when it begins", async () => {
    const listener = listen(database.url);
    await expectToHear(listener);
    const heard = listener.next(({ wakes }) => wakes.includes("link_created"));
    await notify("some_other_channel", "1");
    await notify("link_created");
    await heard;
    expect(listener.seen.wakes).toEqual([null, "link_change", "link_created"]);
    expect(listener.seen.states).toEqual(["listening"]);
  });

  test.each(["not json {", "", "null", "\u0001\u2028", "x".repeat(7999)])(
    "takes any payload for a wake-up and nothing else (%#)",
    async (payload) => {
      const listener = listen(database.url);
      await listener.state("listening");
      const heard = listener.next(({ wakes }) => wakes.length === 1);
      await notify("link_change", payload);
      await heard;
      await expectToHear(listener);
      expect(listener.seen.states).toEqual(["listening"]);
    },
  );

  test("notices a connection that went silent and replaces it; the library alone notices nothing", async () => {
    const bare = pgListen.default({ connectionString: proxy.through(database.url) });
    const bareSaid: string[] = [];
    for (const event of ["error", "reconnect", "connected"] as const) bare.events.on(event, () => bareSaid.push(event));
    bare.events.on("notification", ({ payload }) => bareSaid.push(`heard ${payload}`));
    await bare.connect();
    await bare.listenTo("link_change");
    undos.push(() => bare.close().catch(() => {}));

    const listener = listen(proxy.through(database.url));
    await expectToHear(listener);
    // Notifications keep their order, so that nothing older is still on its way to the bare one behind this.
    const latest = new Promise<void>((resolve) => {
      bare.events.on("notification", ({ payload }) => payload === "latest" && resolve());
    });
    await notify("link_change", '"latest"');
    await latest;
    bareSaid.length = 0;
    proxy.set("hang");
    await notify("link_change", '"lost"');
    await listener.state("down");
    const back = listener.next(({ wakes, states }) => wakes.includes(null) && states.includes("listening"));
    proxy.set("pass");
    await back;
    expect(listener.seen.states).not.toContain("deaf");
    // The one was told to look; the other does not know to this day that it missed something.
    expect(bareSaid).toEqual([]);
    // A connection that hung is destroyed, not left behind: what remains is the listener's and the bare one.
    expect(proxy.connections()).toBe(2);
    proxy.reset();
  });

  test("outlives a refusal of any length; the library alone gives up after three seconds", async () => {
    const bare = pgListen.default({ connectionString: proxy.through(database.url) });
    const gaveUp = new Promise((resolve) => bare.events.on("error", resolve));
    await bare.connect();
    await bare.listenTo("link_change");
    undos.push(() => bare.close().catch(() => {}));

    const listener = listen(proxy.through(database.url));
    await listener.state("listening");
    proxy.set("refuse");
    await listener.state("down");
    await gaveUp;
    expect(listener.wake.state()).toBe("down");
    proxy.set("pass");
    await expectToHear(listener);
    expect(listener.wake.stats().reconnects).toBeGreaterThan(3);
    expect(proxy.connections()).toBe(1);
  });

  test("comes back every time when its connection is ended twenty times, settled or not", async () => {
    const listener = listen(database.url);
    await listener.state("listening");
    const ended = new Set<number>();
    while (ended.size < 20) {
      if (Math.random() < 0.3) await expectToHear(listener);
      const rows = await database.sql`SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'linkfence-listen'`;
      for (const { pid } of rows) ended.add(pid);
    }
    await until(() => listener.wake.stats().reconnects >= 20);
    await expectToHear(listener);
  });

  test.each(["refuse", "hang"] as const)("starts although the first connection fails (%s)", async (mode) => {
    proxy.set(mode);
    const listener = listen(proxy.through(database.url));
    await listener.state("down");
    proxy.set("pass");
    await expectToHear(listener);
    expect(listener.seen.states).toEqual(["down", "listening"]);
    expect(listener.wake.misconfigured()).toBe(false);
  });
});

describe("behind a pooler in transaction mode", () => {
  test("a listener says that it is deaf, until it hears", async () => {
    const pooler = await startPooler(Number(new URL(database.url).port));
    undos.push(pooler.close);
    pooler.set("deaf");
    const listener = listen(pooler.through(database.url));
    await listener.state("deaf");
    expect(listener.wake.misconfigured()).toBe(true);
    pooler.set("pass");
    await expectToHear(listener);
    expect(listener.wake.misconfigured()).toBe(false);
  });

  test("one that has heard before and falls deaf is in trouble, but its connection string is right", async () => {
    const pooler = await startPooler(Number(new URL(database.url).port));
    undos.push(pooler.close);
    const listener = listen(pooler.through(database.url));
    await listener.state("listening");
    pooler.set("deaf");
    await listener.state("deaf");
    expect(listener.wake.misconfigured()).toBe(false);
    pooler.set("pass");
    await expectToHear(listener);
  });

  test("a server that stops answering at the first question is away, not a pooler", async () => {
    const pooler = await startPooler(Number(new URL(database.url).port));
    undos.push(pooler.close);
    pooler.set("mute-at-notify");
    const listener = listen(pooler.through(database.url));
    await listener.state("down");
    expect(listener.seen.states).toEqual(["down"]);
    expect(listener.wake.misconfigured()).toBe(false);
    pooler.set("pass");
    await expectToHear(listener);
  });
});

describe("a listener that is stopped", () => {
  const silentAfter = async (stopped: Wake, seen: Seen) => {
    const before = { wakes: seen.wakes.length, states: seen.states.length };
    proxy.set("pass");
    // Another one lives through several questions meanwhile, which is longer than any pause of the stopped one.
    const other = listen(proxy.through(database.url));
    for (let round = 0; round < 5; round += 1) await expectToHear(other);
    await until(() => proxy.connections() <= 1);
    expect({ wakes: seen.wakes.length, states: seen.states.length }).toEqual(before);
    expect(stopped.state()).toBe("stopped");
  };

  test("in the pause before a reconnect makes no connection any more", async () => {
    const listener = listen(proxy.through(database.url));
    await listener.state("listening");
    proxy.set("refuse");
    await listener.state("down");
    listener.wake.stop();
    await silentAfter(listener.wake, listener.seen);
  });

  test("while it connects to a peer that never answers ends its socket", async () => {
    proxy.set("hang");
    const listener = listen(proxy.through(database.url));
    await until(() => proxy.connections() !== 0);
    listener.wake.stop();
    await until(() => proxy.connections() === 0);
    await silentAfter(listener.wake, listener.seen);
  });

  test("while it listens is silent at once, and may be stopped again", async () => {
    const listener = listen(proxy.through(database.url));
    await expectToHear(listener);
    listener.wake.stop();
    listener.wake.stop();
    await notify("link_change", "1");
    await silentAfter(listener.wake, listener.seen);
  });
});
