import { once } from "node:events";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { findBinaryPackage, RUNTIME_CACHE_DIR } from "./binaries.ts";
import { findFreePort } from "./free-port.ts";
import { type LocalPostgres, startWith } from "./start.ts";
import { createTrial, FAST, isRunning, launchDirectly, refusal } from "./trial.fixture.ts";

const trial = createTrial();
afterEach(trial.cleanUp);
afterAll(trial.close);

async function busyPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  trial.undo(async () => {
    server.close();
    await once(server, "close");
  });
  return (server.address() as AddressInfo).port;
}

describe("a start is refused with what to do", () => {
  test("when the wanted port is taken", async () => {
    const port = await busyPort();

    const error = await refusal(trial.start({ dataDir: await trial.stoppedCluster(), port }));

    expect(error).toMatchObject({
      code: "port-in-use",
      message: expect.stringMatching(new RegExp(`Port ${port} .*Stop`)),
    });
  });

  test("when the wanted port is taken between the look and the start", async () => {
    const error = await refusal(launchDirectly(trial, await trial.stoppedCluster(), await busyPort()));

    expect(error).toMatchObject({ code: "port-in-use", message: expect.stringContaining("Address already in use") });
  });

  test("when the cluster is another major version's", async () => {
    const dataDir = await trial.stoppedCluster();
    await writeFile(join(dataDir, "cluster", "PG_VERSION"), "15\n");

    const error = await refusal(trial.start({ dataDir }));

    expect(error).toMatchObject({
      code: "incompatible-data",
      message: expect.stringMatching(/made by PostgreSQL 15, .* brings PostgreSQL 16.*Dump/),
    });
  });

  test("when the data directory is a file", async () => {
    const file = join(await trial.directory(), "file");
    await writeFile(file, "");

    const error = await refusal(trial.start({ dataDir: file }));

    expect(error).toMatchObject({ code: "data-dir-unusable", message: expect.stringContaining(file) });
  });

  test("when something else lies in the cluster's place", async () => {
    const dataDir = await trial.directory();
    await mkdir(join(dataDir, "cluster"));
    await writeFile(join(dataDir, "cluster", "holiday.jpg"), "");

    const error = await refusal(trial.start({ dataDir }));

    expect(error).toMatchObject({ code: "data-dir-unusable", message: expect.stringContaining("no PG_VERSION") });
  });

  test("when the password file is gone, or of another cluster", async () => {
    const dataDir = await trial.stoppedCluster();
    const file = join(dataDir, "superuser-password");
    await rename(file, `${file}.away`);
    const missing = await refusal(trial.start({ dataDir }));
    await writeFile(file, "another\n");
    const wrong = await refusal(trial.start({ dataDir }));

    expect(missing).toMatchObject({
      code: "data-dir-unusable",
      message: expect.stringContaining("superuser-password"),
    });
    expect(wrong).toMatchObject({ code: "data-dir-unusable", message: expect.stringContaining("does not fit") });
    await rm(file);
    await rename(`${file}.away`, file);
    await trial.start({ dataDir }); // nothing was damaged, and no server was left behind by the refusals
  });

  test("when the server is not ready in time, and no server stays behind", async () => {
    const dataDir = await trial.stoppedCluster();

    const error = await refusal(trial.start({ dataDir, startTimeoutMs: 1 }));

    expect(error).toMatchObject({ code: "start-timeout", message: expect.stringContaining("not ready in time") });
    const next = await trial.start({ dataDir });
    expect(await isRunning(next.pid)).toBe(true);
  });

  test("with the server's own words when it does not accept a setting", async () => {
    const dataDir = await trial.stoppedCluster();

    const error = await refusal(trial.start({ dataDir, settings: { no_such_setting: "1" } }));

    expect(error).toMatchObject({
      code: "start-failed",
      message: expect.stringContaining('unrecognized configuration parameter "no_such_setting"'),
    });
  });
});

describe("a start on any free port", () => {
  test("tries others when somebody takes the one it picked", async () => {
    const ports = [await busyPort(), await busyPort(), await findFreePort()];
    const picked: number[] = [];
    const pick = async () => {
      const port = ports.shift() ?? 0;
      picked.push(port);
      return port;
    };

    const server = await startOnPorts(pick);

    expect(picked).toHaveLength(3);
    expect(server.port).toBe(picked.at(-1));
  });

  test("gives up after ten, and says why", async () => {
    const port = await busyPort();
    let tries = 0;
    const pick = async () => {
      tries += 1;
      return port;
    };

    const error = await refusal(startOnPorts(pick));

    expect(tries).toBe(10);
    expect(error.code).toBe("port-in-use");
  });

  async function startOnPorts(pick: () => Promise<number>): Promise<LocalPostgres> {
    const surroundings = {
      binaryPackage: await findBinaryPackage(),
      runtimeCacheDir: RUNTIME_CACHE_DIR,
      findFreePort: pick,
    };
    const server = await startWith({ dataDir: await trial.stoppedCluster(), settings: FAST }, surroundings);
    trial.undo(() => server.stop());
    return server;
  }
});
