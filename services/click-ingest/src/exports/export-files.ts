// Where files lie. What makes and sends them knows names and streams alone, so that another storage can stand here: one
// that keeps objects under names, takes a stream for each, and shows them only once they are whole.
import { once } from "node:events";
import { constants, createWriteStream, type WriteStream } from "node:fs";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Writable } from "node:stream";
import { errorCode } from "@linkfence/db";
import { storageFault } from "../domain/export-fault.ts";

/** A file that is being written, and that nobody sees. */
export type DraftFile = {
  stream: Writable;
  /** Bytes that the storage has taken. */
  bytes: () => number;
  /** Makes the file safe and then visible, once all of the stream is written. Rejects with a fault of storage. */
  publish(): Promise<void>;
  /** Removes it. Never rejects: what stays is found by `list`. */
  discard(): Promise<void>;
};
export type ExportFiles = {
  /** Begins a file of this name. Rejects with a fault of storage. */
  create(name: string): Promise<DraftFile>;
  /** Where a file is sent from, as its job names its place. */
  locate(place: string): { root: string; path: string };
  /** Names under which there is anything, whole or not. */
  list(): Promise<string[]>;
  /** Removes all that is under the name. */
  remove(name: string): Promise<void>;
};

/** Names are drawn; nothing that is asked for is ever part of one. */
const NAME = /^[0-9a-f]{32}$/;
const PLACE = /^[0-9a-f-]{36}\/[0-9a-f]{32}$/;
const DRAFT = ".part";
/** The service writes, its group (such as a proxy that sends files itself) reads, and nobody else does. */
const FILE_MODE = 0o640;
const DIRECTORY_MODE = 0o750;
/** Fewer calls to the disk than with the 64 KiB of a stream, and little beside what a worker may take. */
const BUFFER_BYTES = 256 * 1024;

/**
 * Creates the storage in a local directory, which is made where it is missing.
 * @param store names the directory of one database's files in it: two installations may share a disk
 */
export function createDirectoryFiles(root: string, store: () => Promise<string>): ExportFiles {
  const directoryOf = async () => resolve(root, await store());
  const pathIn = (directory: string, name: string) => {
    if (!NAME.test(name)) throw new TypeError("no file of an export has such a name");
    return join(directory, name);
  };

  return {
    async create(name) {
      const directory = await directoryOf();
      const path = pathIn(directory, name);
      const draft = `${path}${DRAFT}`;
      const handle = await asFault(async () => {
        const made = await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
        if (made !== undefined) await syncParents(directory, made);
        return open(draft, "wx", FILE_MODE);
      });
      const stream = createWriteStream(draft, { fd: handle, autoClose: false, highWaterMark: BUFFER_BYTES });
      return {
        stream,
        bytes: () => stream.bytesWritten,
        publish: () =>
          asFault(async () => {
            await handle.sync();
            await close(stream);
            await show(draft, path, directory);
          }),
        discard: async () => {
          await close(stream).catch(() => {});
          await rm(draft, { force: true }).catch(() => {});
        },
      };
    },

    locate(place) {
      if (!PLACE.test(place)) throw new TypeError("no file of an export has such a place");
      return { root: resolve(root), path: place };
    },

    async list() {
      const entries = await readdir(await directoryOf()).catch((error: unknown) => {
        if (errorCode(error) === "ENOENT") return [];
        throw error;
      });
      const names = entries.map((entry) => (entry.endsWith(DRAFT) ? entry.slice(0, -DRAFT.length) : entry));
      return [...new Set(names.filter((name) => NAME.test(name)))];
    },

    async remove(name) {
      const path = pathIn(await directoryOf(), name);
      await rm(`${path}${DRAFT}`, { force: true });
      await rm(path, { force: true });
    },
  };
}

/** The bytes are on the disk before the name says that they are, and the name is before anybody is told. */
async function show(draft: string, path: string, directory: string): Promise<void> {
  await rename(draft, path);
  await syncDirectory(directory);
}

/** Directories that were made, from the first of them down to this one, are there after a crash, too. */
async function syncParents(directory: string, first: string): Promise<void> {
  for (let each = directory; each !== dirname(first); each = dirname(each)) await syncDirectory(dirname(each));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** The stream holds the file open until it is destroyed, and destroys nothing that is still being written. */
async function close(stream: WriteStream): Promise<void> {
  if (stream.closed) return;
  const closed = once(stream, "close");
  stream.destroy();
  await closed;
}

async function asFault<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw Object.assign(storageFault(errorCode(error)), { cause: error });
  }
}
