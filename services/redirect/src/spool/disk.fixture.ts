// A disk in memory that does what a test tells it to: fail, write less than it was given, or never end.
import type { FileSystem, SpoolFile } from "./file-system.ts";

export type Operation = "list" | "open" | "write" | "read" | "sync" | "remove" | "syncDirectory" | "close" | "look";
/** An error by its code; `short`: half of it is written; `hang`: until `release`. */
export type Fault = `E${string}` | "short" | "hang" | undefined;

/** `id` is what its identity is made of: the same on a copy of the disk, another one in a copy of the file. */
type Content = { bytes: Buffer; synced: Buffer; id?: string };

let contents = 0;
const idOf = (content: Content) => {
  content.id ??= String(++contents);
  return content.id;
};

export type Disk = ReturnType<typeof createDisk>;

/** An error of the system, as Node's file system rejects with. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as the test said`), { code });
}

/** Creates an empty disk. `files` has what is on it, by path. */
export function createDisk(files = new Map<string, Content>()) {
  let fault: (operation: Operation, path: string) => Fault = () => undefined;
  const held: (() => void)[] = [];
  const calls: string[] = [];

  async function begin(operation: Operation, path: string): Promise<Fault> {
    const name = path.split("/").at(-1) ?? "";
    calls.push(`${operation} ${name}`);
    const what = fault(operation, name);
    if (what === "hang") await new Promise<void>((resolve) => held.push(resolve));
    else if (what !== undefined && what !== "short") throw systemError(what);
    return what;
  }

  function fileOf(path: string, content: Content): SpoolFile {
    return {
      fd: -1,
      async write(bytes, position) {
        const what = await begin("write", path);
        const part = what === "short" ? bytes.subarray(0, bytes.length >> 1) : bytes;
        const end = position + part.length;
        if (content.bytes.length < end) content.bytes = Buffer.concat([content.bytes], end);
        part.copy(content.bytes, position);
        return part.length;
      },
      async read(bytes, position) {
        await begin("read", path);
        return content.bytes.copy(bytes, 0, position);
      },
      async sync() {
        await begin("sync", path);
        content.synced = Buffer.from(content.bytes);
      },
      identity: async () => idOf(content),
      close: async () => void (await begin("close", path)),
    };
  }

  const fs: FileSystem = {
    async list(directory) {
      await begin("list", directory);
      return [...files].map(([path, { bytes }]) => ({ name: path.split("/").at(-1) ?? "", size: bytes.length }));
    },
    async open(path, how) {
      await begin("open", path);
      const content = files.get(path);
      if (how === "create" && content) throw systemError("EEXIST");
      if (how === "read" && !content) throw systemError("ENOENT");
      const opened = content ?? { bytes: Buffer.alloc(0), synced: Buffer.alloc(0) };
      files.set(path, opened);
      return fileOf(path, opened);
    },
    async leadsTo(path, file) {
      await begin("look", path);
      const content = files.get(path);
      return content !== undefined && idOf(content) === (await file.identity());
    },
    async remove(path) {
      await begin("remove", path);
      if (!files.delete(path)) throw systemError("ENOENT");
    },
    syncDirectory: async (directory) => void (await begin("syncDirectory", directory)),
  };

  return {
    fs,
    files,
    calls,
    /** From now on, each operation on a file of that name goes as this says. */
    breakBy(how: typeof fault): void {
      fault = how;
    },
    mend(): void {
      fault = () => undefined;
    },
    /** Lets everything end that hangs. */
    release(): void {
      fault = () => undefined;
      for (const resolve of held.splice(0)) resolve();
    },
    names: () => [...files.keys()].map((path) => path.split("/").at(-1) ?? "").sort(),
    segments: () => [...files.keys()].filter((path) => path.endsWith(".spool")).sort(),
    /** The disk as the next process finds it, on its own: after a kill, or after a power loss. */
    copy: (which: "bytes" | "synced" = "bytes") =>
      createDisk(
        new Map(
          [...files].map(([path, content]) => [
            path,
            { id: idOf(content), bytes: Buffer.from(content[which]), synced: Buffer.from(content[which]) },
          ]),
        ),
      ),
    /** The same files, copied to another directory. */
    copyFiles: () =>
      createDisk(
        new Map(
          [...files].map(([path, { bytes }]) => [path, { bytes: Buffer.from(bytes), synced: Buffer.from(bytes) }]),
        ),
      ),
  };
}
