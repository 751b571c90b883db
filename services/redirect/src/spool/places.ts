// Where in the spool's directory each of several processes has its own: the first in the directory itself, as a process
// that is alone has it, the others below it. A place is found again by its number.
import { mkdir, readdir } from "node:fs/promises";
import { ConfigError } from "@linkfence/service-shell";
import { segmentNumber } from "./segment.ts";

const FOLDER = /^worker-([2-9]|[1-9]\d{1,3})$/;

/** The directory of a place, counted from 1. */
export function placeDirectory(directory: string, place: number): string {
  return place === 1 ? directory : `${directory}/worker-${place}`;
}

/** Makes the directory of a place where it is missing; the first one has to be there. Throws a ConfigError. */
export async function makePlace(directory: string, place: number): Promise<string> {
  const path = placeDirectory(directory, place);
  if (place === 1) return path;
  try {
    // Clicks are of no concern to other accounts of the machine.
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST")
      throw new ConfigError([`CLICK_SPOOL_DIR cannot be used (${path}): ${(error as Error).message}`]);
  }
  return path;
}

/** Places in which segments lie, smallest first. Rejects with the system's error where the directory cannot be read. */
export async function findLeftPlaces(directory: string): Promise<number[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const numbers = entries.flatMap((entry) => {
    const number = FOLDER.exec(entry.name)?.[1];
    return entry.isDirectory() && number !== undefined ? [Number(number)] : [];
  });
  const places = [1, ...numbers.sort((a, b) => a - b)];
  const found = await Promise.all(
    places.map(async (place) => ((await hasSegments(placeDirectory(directory, place))) ? [place] : [])),
  );
  return found.flat();
}

async function hasSegments(directory: string): Promise<boolean> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.some((entry) => entry.isFile() && !Number.isNaN(segmentNumber(entry.name)));
}
