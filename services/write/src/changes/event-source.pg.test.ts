// Streams of changes as a client sees them that others wrote, over connections that break: it goes on by itself.
import { expect, test } from "@jest/globals";
import { startFaultProxy } from "@linkfence/testkit";
import { EventSource } from "eventsource";
import { startFeedWorld } from "./feed-world.fixture.ts";

test("an EventSource reconnects by itself as it is told to, and gets each change once and in order", async () => {
  const world = await startFeedWorld({ retryMs: 10 });
  const proxy = await startFaultProxy(Number(new URL(world.url).port));
  const key = await world.addKey("ann");
  const codes = await world.revokeNew("ann");
  const { position } = (await (await world.get("/v1/changes", key)).json()) as { position: number };

  const sent: (string | null)[] = [];
  const source = new EventSource(`${proxy.through(world.url)}v1/changes?after=${position}`, {
    fetch(input, init) {
      const headers = new Headers({ ...init.headers, Authorization: `Bearer ${key}` });
      sent.push(headers.get("last-event-id"));
      return fetch(input, { ...init, headers });
    },
  });
  const seen: string[] = [];
  source.addEventListener("revoked", ({ data }) => seen.push(JSON.parse(data).code));
  const opened = async (times: number) => {
    while (sent.length < times || source.readyState !== EventSource.OPEN) await new Promise(setImmediate);
  };

  await opened(1);
  // It has seen no event yet: where it began stands in its address.
  proxy.reset();
  await opened(2);
  codes.push(...(await world.revokeNew("ann", 300)));
  for (let round = 3; round < 8; round += 1) {
    while (seen.length < codes.length - 1) await new Promise(setImmediate);
    proxy.reset();
    codes.push(...(await world.revokeNew("ann", 300)));
    await opened(round);
  }
  while (seen.length < codes.length - 1) await new Promise(setImmediate);
  expect(seen).toEqual(codes.slice(1));
  expect(sent[0]).toBeNull();
  expect(Number(sent.at(-1))).toBeGreaterThan(position);
  source.close();
  await proxy.close();
  await world.stop();
});
