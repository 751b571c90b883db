import { execFile, spawnSync } from "node:child_process";
import { chmod, chown, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { findBinaryPackage } from "./binaries.ts";
import { findFreePort } from "./free-port.ts";
import { createProcessTable } from "./process-table.ts";
import { type LocalPostgres, startWith } from "./start.ts";
import { createTrial, FAST, refusal, withSql } from "./trial.fixture.ts";

const run = promisify(execFile);
const trial = createTrial();
const table = createProcessTable();
afterEach(trial.cleanUp);
afterAll(trial.close);

const NOBODY = { uid: 65_534, gid: 65_534 };
// Only root changes accounts, so only root can meet (or build) a directory that is closed to the server.
const whenRoot = process.getuid?.() === 0 ? describe : describe.skip;

/** A checkout as below root's home: nobody but root may enter, PostgreSQL's programs and the data are inside. */
async function closedCheckout() {
  const home = await mkdtemp(join(tmpdir(), "linkfence-closed-"));
  trial.undo(() => rm(home, { recursive: true, force: true }));
  await chmod(home, 0o700);
  const { nativeDir } = await findBinaryPackage();
  await run("cp", ["-a", nativeDir, join(home, "native")]);
  const binaryPackage = { nativeDir: join(home, "native"), id: "postgresql-trial" };
  return { binaryPackage, dataDir: join(home, "data") };
}

async function startAndTrack(...[options, surroundings]: Parameters<typeof startWith>): Promise<LocalPostgres> {
  const server = await startWith({ settings: FAST, ...options }, surroundings);
  trial.undo(() => server.stop());
  return server;
}

whenRoot("started by root in a checkout that is closed to other users", () => {
  test("the server runs as another user all the same, and again, from one copy of its programs", async () => {
    const { binaryPackage, dataDir } = await closedCheckout();
    const runtimeCacheDir = join(await trial.directory(), "cache");
    const surroundings = { binaryPackage, runtimeCacheDir, findFreePort };

    const first = await startAndTrack({ dataDir, databases: ["linkfence"] }, surroundings);
    const facts = await table.find(first.pid);
    await withSql(first.url("linkfence"), (sql) => sql`CREATE TABLE kept AS SELECT 42 AS answer`);
    const copied = await stat(join(runtimeCacheDir, binaryPackage.id));
    await first.stop();
    const second = await startAndTrack({ dataDir }, surroundings);

    expect(facts?.uid).not.toBe(0);
    expect(facts?.commandLine).toContain(runtimeCacheDir);
    expect(await withSql(second.url("linkfence"), (sql) => sql`SELECT answer FROM kept`)).toEqual([{ answer: 42 }]);
    expect((await stat(join(runtimeCacheDir, binaryPackage.id))).ino).toBe(copied.ino);
  });

  test("a second start is refused, and a killed server is recovered", async () => {
    const { binaryPackage, dataDir } = await closedCheckout();
    const surroundings = { binaryPackage, runtimeCacheDir: join(await trial.directory(), "cache"), findFreePort };
    const first = await startAndTrack({ dataDir }, surroundings);

    const refused = await refusal(startAndTrack({ dataDir }, surroundings));
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    const next = await startAndTrack({ dataDir }, surroundings);

    expect(refused.code).toBe("data-dir-in-use");
    expect(await withSql(next.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
  });

  test("says what to do when its programs cannot be copied to where the server could reach them", async () => {
    const { binaryPackage, dataDir } = await closedCheckout();
    const file = join(await trial.directory(), "file");
    await writeFile(file, "");

    const refused = await refusal(
      startAndTrack({ dataDir }, { binaryPackage, runtimeCacheDir: join(file, "cache"), findFreePort }),
    );

    expect(refused).toMatchObject({
      code: "start-failed",
      message: expect.stringMatching(/cannot read .*native.*Move the checkout .*ordinary user/),
    });
  });
});

whenRoot("a cluster that root copied or restored", () => {
  test("is handed to the server's account", async () => {
    const dataDir = await trial.stoppedCluster();
    await run("chown", ["-R", "0:0", join(dataDir, "cluster")]);
    await chmod(join(dataDir, "cluster"), 0o755);

    const second = await trial.start({ dataDir });

    expect(await withSql(second.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
    expect((await stat(join(dataDir, "cluster", "PG_VERSION"))).uid).not.toBe(0);
  });
});

whenRoot("started by an ordinary user", () => {
  const mayRead = spawnSync(process.execPath, ["--version"], { ...NOBODY, cwd: import.meta.dirname }).status === 0;
  // In a checkout below a closed directory there is no other user who could start anything.
  const whenReadable = mayRead ? test : test.skip;

  whenReadable("the server runs as that user, and refuses another user's cluster in so many words", async () => {
    const dataDir = await trial.directory();
    await chown(dataDir, NOBODY.uid, NOBODY.gid);

    const own = await trial.startInChild({ dataDir, databases: ["linkfence"] }, NOBODY);
    const pid = "pid" in own.report ? own.report.pid : 0;
    const other = await trial.startInChild({ dataDir: await trial.stoppedCluster() }, NOBODY);

    expect((await table.find(pid))?.uid).toBe(NOBODY.uid);
    expect(other.report).toMatchObject({
      code: "data-dir-unusable",
      message: expect.stringMatching(/permission denied.*set LINKFENCE_DATA_DIR/),
    });
  });
});
