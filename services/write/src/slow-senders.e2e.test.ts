// Senders that take their time, all at once on a real service with the times that it has: those that hold a connection for
// nothing are cut off, those that have reason to take long are not, and nobody else notices.
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { checkRaw, readMetric } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { openReader } from "./changes/reader.fixture.ts";
import { openFile } from "./imports.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

/** Sends a text, then a letter every 250 ms and never an end; resolves with what came back when it is cut off. */
function dribble(text: string): Promise<string> {
  const { hostname, port } = new URL(world.write.url);
  return new Promise((resolve) => {
    let answer = "";
    let drip: NodeJS.Timeout | undefined;
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => {
      socket.write(text);
      drip = setInterval(() => socket.write("a"), 250);
    });
    socket
      .on("error", () => {})
      .on("data", (chunk) => {
        answer += String(chunk);
      });
    socket.once("close", () => {
      clearInterval(drip);
      resolve(answer);
    });
  });
}

test("slow heads and bodies are cut off, a stream of changes and a long import go on, and others are answered", async () => {
  const reader = await openReader(world.write.url, { key: world.adminKey });
  const file = openFile(world.write.url, world.adminKey);
  await file.write("target,alias\n");
  let lines = 0;
  const query = "a".repeat(600);
  const rows = setInterval(() => void file.write(`https://example.com/${++lines}?${query},slow-${lines}\n`), 500);

  const body = `Host: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\nAuthorization: Bearer ${world.adminKey}\r\n\r\n{`;
  const slowBody = dribble(`POST /v1/links HTTP/1.1\r\n${body}`);
  const slowBatch = dribble(`POST /v1/links:batch HTTP/1.1\r\n${body}`);
  const refused = dribble("POST /v1/links HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n");
  const slowHead = dribble("POST /v1/links HTTP/1.1\r\nHost: x\r\nX: ");
  let gone = false;
  const allGone = Promise.all([slowBody, slowBatch, refused, slowHead]).finally(() => {
    gone = true;
  });
  let calls = 0;
  while (!gone) {
    expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
    calls += 1;
  }
  clearInterval(rows);
  for (const [path, cut] of [
    ["/v1/links", slowBody],
    ["/v1/links:batch", slowBatch],
  ] as const) {
    const answer = checkRaw("POST", path, await cut);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain("X-Request-Id: ");
  }
  // It has its answer, and gets no other.
  expect(checkRaw("POST", "/v1/links", await refused).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 401"]);
  expect(await slowHead).toMatch(/^HTTP\/1\.1 408 /);
  expect(calls).toBeGreaterThan(10);

  file.end();
  expect((await file.answer).status).toBe(201);
  expect((await file.answer).body).toMatchObject({ created: lines, refused: 0 });
  await world.api("DELETE", "/v1/links/slow-1");
  await reader.until(() => reader.codes().includes("slow-1"));
  expect(reader.state.heartbeats).toBeGreaterThan(0);
  reader.close();
  await allGone;
  expect(await readMetric(world.write, 'linkfence_http_unreadable_total{kind="slow"}')).toBe(4);
  expect(await readMetric(world.write, "linkfence_batch_bytes")).toBe(0);
  expect(world.write.records().filter(({ level }) => level !== "info")).toEqual([]);
});
