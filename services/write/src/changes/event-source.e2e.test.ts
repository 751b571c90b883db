// Streams of changes as a client sees them that others wrote, over connections that break: it goes on by itself.
import { expect, test } from "@jest/globals";
import { spawnProcess, startFaultProxy, until } from "@linkfence/testkit";
import { startFeedWorld } from "./feed-world.fixture.ts";

test("an EventSource reconnects by itself as it is told to, and gets each change once and in order", async () => {
  const world = await startFeedWorld({ retryMs: 10 });
  const proxy = await startFaultProxy(Number(new URL(world.url).port));
  const key = await world.addKey("ann");
  await world.revokeNew("ann");
  const { position } = (await (await world.get("/v1/changes", key)).json()) as { position: number };
  const client = spawnProcess("services/write/dist/changes/event-source.fixture.js", {
    STREAM_URL: `${proxy.through(world.url)}v1/changes?after=${position}`,
    STREAM_KEY: key,
  });
  const lines = (message: string) => client.records().filter((record) => record.message === message);
  const untilLines = async (message: string, count: number) => {
    await until(() => lines(message).length >= count);
  };

  await untilLines("open", 1);
  // It has seen no event yet: where it began stands in its address.
  proxy.reset();
  await untilLines("open", 2);
  const codes = await world.revokeNew("ann", 300);
  for (let opened = 3; opened < 8; opened += 1) {
    await untilLines("revoked", codes.length);
    codes.push(...(await world.revokeNew("ann", 300)));
    proxy.reset();
    await untilLines("open", opened);
  }
  await untilLines("revoked", codes.length);
  expect(lines("revoked").map(({ code }) => code)).toEqual(codes);
  expect(lines("fault")).toEqual([]);
  expect(lines("asks")[0]?.lastEventId).toBeNull();
  expect(Number(lines("asks").at(-1)?.lastEventId)).toBeGreaterThan(position);
  client.kill("SIGKILL");
  await client.exited;
  await proxy.close();
  await world.stop();
});
