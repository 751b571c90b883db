// Countries of addresses, from a file in MaxMind's format that the operator brings. It is read into memory once: a newer
// file counts from the next start on.
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { ConfigError } from "@linkfence/service-shell";
import { type CountryResponse, Reader } from "mmdb-lib";
import type { CountryLookup } from "../domain/click.ts";

/** How an IPv4 address is written by a socket that takes both families. */
const MAPPED = /^::ffff:(?=\d+\.)/i;

/** Opens the file. Throws a ConfigError where it cannot be read, or is none of its kind. */
export async function openCountries(path: string): Promise<CountryLookup> {
  const reader = await read(path);
  return (address) => {
    const plain = address.replace(MAPPED, "");
    // A file for IPv4 alone would take the beginning of a longer address for a whole one.
    const family = isIP(plain);
    if (family === 0 || family > reader.metadata.ipVersion) return undefined;
    try {
      const found = reader.get(plain);
      // Where the network is announced, or else whom it is registered to.
      return (found?.country ?? found?.registered_country)?.iso_code;
    } catch {
      return undefined; // a damaged part of the file
    }
  };
}

async function read(path: string): Promise<Reader<CountryResponse>> {
  try {
    const reader = new Reader<CountryResponse>(await readFile(path));
    reader.get("127.0.0.1");
    return reader;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`CLICK_MMDB_FILE must name a readable file in MaxMind's format (${path}): ${reason}`]);
  }
}
