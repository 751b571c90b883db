// Downloads that break off, on either side.
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { codeOf, type ExportApi, type Job, OWNER, openExportApi } from "./exports.fixture.ts";

const SIZE = 64 * 1024 * 1024;
let api: ExportApi;
let large: Job;

beforeAll(async () => {
  api = await openExportApi();
  large = await api.ended(await api.order({ format: "jsonl" }));
  // What is sent is what lies there: bytes of any kind do.
  const [path = ""] = readdirSync(api.exporter.directory, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.includes("/"),
  );
  await writeFile(join(api.exporter.directory, path), Buffer.alloc(SIZE, "x"));
});
afterAll(() => api.close());

/** Files of the directory that the keeper has open (proc(5)). */
function openFiles(): string[] {
  const { ingest, directory } = api.exporter;
  const descriptors = `/proc/${ingest().pid}/fd`;
  const paths = readdirSync(descriptors).flatMap((name) => {
    try {
      return [readlinkSync(join(descriptors, name))];
    } catch {
      return []; // closed meanwhile
    }
  });
  return paths.filter((path) => path.startsWith(directory));
}

/** Asks for it on a socket of its own, which takes nothing until it is told to. */
async function begin() {
  const { port } = new URL(api.world.write.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(
    `GET /v1/exports/${large.id}/download HTTP/1.1\r\nHost: sho.example\r\nAuthorization: Bearer ${api.zoe}\r\n\r\n`,
  );
  await once(socket, "readable");
  return socket;
}

const underWay = async () => {
  const page = await (await fetch(`${api.world.write.opsUrl}/metrics`)).text();
  return Number(/^linkfence_downloads (\d+)$/m.exec(page)?.[1]);
};

test("a file that clients leave in the middle, thirty times, holds nothing afterwards", async () => {
  for (let round = 0; round < 6; round += 1) {
    const sockets = await Promise.all(Array.from({ length: 5 }, begin));
    expect(await underWay()).toBe(5);
    expect(openFiles()).toHaveLength(5);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await underWay()) === 0);
  }
  await until(() => openFiles().length === 0);
});

test("there is room for a few downloads of an owner at a time", async () => {
  const sockets = await Promise.all(Array.from({ length: 8 }, begin));
  const path = `/v1/exports/${large.id}/download`;
  const more = await api.world.raw(path, { method: "GET", headers: { Authorization: `Bearer ${api.zoe}` } });
  expect([more.status, codeOf(more)]).toEqual([503, "overloaded"]);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await underWay()) === 0);
});

test("a file whose keeper dies on the way breaks off, and never looks whole", async () => {
  const socket = await begin();
  api.exporter.ingest().kill("SIGKILL");
  let received = 0;
  socket.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  await once(socket, "close");
  expect(received).toBeLessThan(SIZE);
  const refused = await api.get(large);
  expect([refused.status, codeOf(refused)]).toEqual([503, "exports-unavailable"]);
  const record = await api.world.write.logged(({ message, outcome }) => message === "download" && outcome === "broken");
  expect(record).toMatchObject({ owner: OWNER });
  await api.exporter.restart();
});
