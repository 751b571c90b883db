import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { findLeftPlaces, makePlace, placeDirectory } from "./places.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-places-"));
});
afterEach(() => rm(directory, { recursive: true }));

const leave = async (place: number, name = "clicks-000000000001.spool") =>
  writeFile(join(await makePlace(directory, place), name), "");

test("the first place is the directory itself, and the others are made below it, once, for their user alone", async () => {
  expect(await makePlace(directory, 1)).toBe(directory);
  expect(await makePlace(directory, 2)).toBe(placeDirectory(directory, 2));
  expect(await makePlace(directory, 2)).toBe(join(directory, "worker-2"));
  expect((await stat(join(directory, "worker-2"))).mode & 0o777).toBe(0o700);
});

test("a place below a directory that is not there is refused, with the setting's name", async () => {
  await expect(makePlace(join(directory, "none"), 2)).rejects.toThrow("CLICK_SPOOL_DIR cannot be used");
});

test("places with segments in them are found by number, and nothing else is taken for one", async () => {
  for (const place of [10, 1, 3]) await leave(place);
  await leave(4, "account");
  for (const name of ["worker-1", "worker-02", "worker-x", "worker-5.bak", "other"]) {
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, "clicks-000000000001.spool"), "");
  }
  await writeFile(join(directory, "worker-6"), "");
  expect(await findLeftPlaces(directory)).toEqual([1, 3, 10]);
});
