import { closeSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

export type ServerLog = {
  /** Takes the server's stderr as it comes. */
  append(chunk: Buffer): void;
  /** The last lines, oldest first. */
  tail(): readonly string[];
  close(): void;
};

// The file keeps some ten thousand lines, twice (server.log and server.log.1); the tail is for error messages.
const MAX_FILE_BYTES = 5 * 1024 * 1024;
const MAX_TAIL_LINES = 200;
// A failing statement is logged whole; the rest of a longer line is cut off.
const MAX_LINE_CHARS = 4_096;

/**
 * Keeps what the server says, in memory and in a file, both bounded. Written synchronously: the server says little, and
 * what it said last must be there after a kill -9. Trouble with the file never becomes trouble for the server.
 * @param options `secret` is replaced wherever it turns up, `onTrouble` is told once why the file is incomplete
 */
export function createServerLog(
  file: string,
  options: { secret: string; onTrouble(error: unknown): void; maxFileBytes?: number },
): ServerLog {
  const maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
  const decoder = new StringDecoder("utf8");
  const lines: string[] = [];
  let partial = "";
  let fd: number | undefined;
  let size = 0;
  let troubled = false;

  function attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      if (!troubled) {
        troubled = true;
        options.onTrouble(error);
      }
    }
  }

  function openFile(): void {
    fd = openSync(file, "a", 0o600);
    size = statSync(file).size;
  }

  function rotateWhenFull(bytes: number): void {
    if (fd !== undefined && size + bytes > maxFileBytes) {
      closeSync(fd);
      fd = undefined;
      renameSync(file, `${file}.1`);
      openFile();
    }
  }

  function takeLine(raw: string): void {
    const line = raw.slice(0, MAX_LINE_CHARS).replaceAll(options.secret, "[password]");
    lines.push(line);
    if (lines.length > MAX_TAIL_LINES) {
      lines.shift();
    }
    attempt(() => {
      const bytes = Buffer.from(`${line}\n`);
      rotateWhenFull(bytes.length);
      if (fd !== undefined) {
        size += writeSync(fd, bytes);
      }
    });
  }

  attempt(openFile);
  return {
    append(chunk) {
      const parts = (partial + decoder.write(chunk)).split("\n");
      partial = (parts.pop() ?? "").slice(0, MAX_LINE_CHARS);
      parts.forEach(takeLine);
    },
    tail: () => [...lines],
    close() {
      if (partial !== "") {
        takeLine(partial);
        partial = "";
      }
      attempt(() => {
        if (fd !== undefined) {
          closeSync(fd);
          fd = undefined;
        }
      });
    },
  };
}
