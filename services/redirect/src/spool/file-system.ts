// The few things that a spool asks of a file system, as a port: what a disk can do wrong is driven by a fake one in tests.
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, open, readdir, stat, unlink } from "node:fs/promises";

/** One open file. Everything rejects with the error of the system, which has a `code`. */
export type SpoolFile = {
  /** Number of the descriptor, for a lock. */
  fd: number;
  /** Writes in one call. Resolves with how many bytes were written, which may be fewer than there are. */
  write(bytes: Buffer, position: number): Promise<number>;
  /** Reads up to as many bytes as fit; fewer at the end of the file alone. */
  read(bytes: Buffer, position: number): Promise<number>;
  /** Resolves when what was written is on the disk. */
  sync(): Promise<void>;
  /** Tells it from every other file, also from its copies; the same for as long as it exists. */
  identity(): Promise<string>;
  close(): Promise<void>;
};

export type FileSystem = {
  /** Names of the files in a directory, and their sizes; a link is none. */
  list(directory: string): Promise<{ name: string; size: number }[]>;
  /** `create`: to read and write, and it must not be there yet; `change`: to read and write, made where it is missing. */
  open(path: string, how: "create" | "change" | "read"): Promise<SpoolFile>;
  /** Whether the name leads to this file still. */
  leadsTo(path: string, file: SpoolFile): Promise<boolean>;
  remove(path: string): Promise<void>;
  /** Resolves when names made and removed in a directory are on the disk. */
  syncDirectory(directory: string): Promise<void>;
};

const FLAGS = {
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
  change: constants.O_RDWR | constants.O_CREAT,
  read: constants.O_RDONLY,
};
/** Clicks are of no concern to other accounts of the machine. */
const MODE = 0o600;

/** The file system of this machine. */
export const realFileSystem: FileSystem = {
  async list(directory) {
    const entries = await readdir(directory, { withFileTypes: true });
    // Opening something else, as a pipe, may never end.
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    return Promise.all(names.map(async (name) => ({ name, size: (await stat(`${directory}/${name}`)).size })));
  },
  open: async (path, how) => wrap(await open(path, FLAGS[how], MODE)),
  async leadsTo(path, file) {
    try {
      return identify(await stat(path, { bigint: true })) === (await file.identity());
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
      throw error;
    }
  },
  remove: (path) => unlink(path),
  async syncDirectory(directory) {
    const handle = await open(directory, constants.O_RDONLY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

/** Numbers of files are given out anew, and those of devices change from one start of a machine to the next. */
const identify = ({ ino, birthtimeNs }: BigIntStats) => `${ino}-${birthtimeNs}`;

function wrap(handle: FileHandle): SpoolFile {
  return {
    fd: handle.fd,
    write: async (bytes, position) => (await handle.write(bytes, 0, bytes.length, position)).bytesWritten,
    async read(bytes, position) {
      let got = 0;
      while (got < bytes.length) {
        const { bytesRead } = await handle.read(bytes, got, bytes.length - got, position + got);
        if (bytesRead === 0) break;
        got += bytesRead;
      }
      return got;
    },
    sync: () => handle.datasync(),
    identity: async () => identify(await handle.stat({ bigint: true })),
    close: () => handle.close(),
  };
}
