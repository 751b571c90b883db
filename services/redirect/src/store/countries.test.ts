import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ConfigError } from "@linkfence/service-shell";
import { openCountries } from "./countries.ts";
import { makeMmdb } from "./mmdb.fixture.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-mmdb-"));
});
afterAll(() => rm(directory, { recursive: true }));

async function write(content: Buffer | string): Promise<string> {
  const path = join(directory, "countries.mmdb");
  await writeFile(path, content);
  return path;
}

describe("a file of countries", () => {
  test.each([
    ["10.0.0.1", "NZ"],
    ["130.0.0.1", "DE"],
    ["200.0.0.1", undefined],
    ["::ffff:10.0.0.1", "NZ"],
    ["2001:db8::1", undefined],
    ["999.1.1.1", undefined],
    ["", undefined],
    ["<script>", undefined],
  ])("knows of %p the country %p", async (address, country) => {
    const lookUp = await openCountries(await write(makeMmdb("NZ", "DE")));
    expect(lookUp(address)).toBe(country);
  });

  test.each([
    ["is damaged", Buffer.from("no such thing")],
    ["is empty", Buffer.alloc(0)],
    ["ends early", makeMmdb("NZ", "DE").subarray(0, 60)],
  ])("that %s is refused, with the setting's name", async (_what, content) => {
    await expect(openCountries(await write(content))).rejects.toThrow(ConfigError);
    await expect(openCountries(await write(content))).rejects.toThrow(
      "CLICK_MMDB_FILE must name a readable file in MaxMind's format",
    );
  });

  test("that is missing is refused, with the setting's name", async () => {
    await expect(openCountries(join(directory, "none"))).rejects.toThrow(
      "CLICK_MMDB_FILE must name a readable file in MaxMind's format",
    );
  });
});
