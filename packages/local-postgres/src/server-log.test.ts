import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createServerLog } from "./server-log.ts";

let directory = "";
let file = "";
const troubles: unknown[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-log-"));
  file = join(directory, "server.log");
  troubles.length = 0;
});
afterEach(async () => await rm(directory, { recursive: true }));

function open(options: { maxFileBytes?: number } = {}) {
  return createServerLog(file, { secret: "hunter2", onTrouble: (error) => troubles.push(error), ...options });
}

describe("the server's log", () => {
  test("keeps whole lines, however the pipe cuts them", async () => {
    const log = open();
    const bytes = Buffer.from("first\nzweite Zeile mit ß\nlast");
    for (const byte of bytes) {
      log.append(Buffer.of(byte));
    }
    log.close();

    expect(log.tail()).toEqual(["first", "zweite Zeile mit ß", "last"]);
    expect(await readFile(file, "utf8")).toBe("first\nzweite Zeile mit ß\nlast\n");
  });

  test("never shows the password, even when the pipe cuts through it", async () => {
    const log = open();
    log.append(Buffer.from("STATEMENT: ALTER ROLE x PASSWORD 'hun"));
    log.append(Buffer.from("ter2'\n"));
    log.close();

    expect(log.tail()).toEqual(["STATEMENT: ALTER ROLE x PASSWORD '[password]'"]);
    expect(await readFile(file, "utf8")).not.toContain("hunter2");
  });

  test("keeps the last 200 lines in memory and cuts an endless one", () => {
    const log = open();
    log.append(Buffer.from(Array.from({ length: 250 }, (_, index) => `line ${index}\n`).join("")));
    log.append(Buffer.from("x".repeat(1_000_000)));
    log.close();

    expect(log.tail()).toHaveLength(200);
    expect(log.tail()[0]).toBe("line 51");
    expect(log.tail().at(-1)).toHaveLength(4_096);
  });

  test("keeps two files of bounded size", async () => {
    const log = open({ maxFileBytes: 1_000 });
    for (let index = 0; index < 1_000; index += 1) {
      log.append(Buffer.from(`line ${index}\n`));
    }
    log.close();

    expect((await stat(file)).size).toBeLessThanOrEqual(1_000);
    expect((await stat(`${file}.1`)).size).toBeLessThanOrEqual(1_000);
    expect(await readFile(file, "utf8")).toMatch(/line 999\n$/);
  });

  test("goes on in memory when the file cannot be written, and says so once", async () => {
    await rm(directory, { recursive: true });
    const log = open();
    log.append(Buffer.from("one\ntwo\n"));
    log.close();

    expect(log.tail()).toEqual(["one", "two"]);
    expect(troubles).toHaveLength(1);
    directory = await mkdtemp(join(tmpdir(), "linkfence-log-"));
  });

  test("is closed to other users", async () => {
    open().close();

    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });
});
