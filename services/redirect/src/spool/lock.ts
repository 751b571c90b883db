// One process at a time on a directory. The lock is the kernel's, on an open file (on Linux one of fcntl(2)'s "open file
// description" kind): it ends with its process, however that ends, holds between containers that share a directory, and
// needs no look at process numbers, which are given out anew and differ from container to container.
import { tryLock } from "fs-native-extensions";
import { realFileSystem } from "./file-system.ts";
import type { Lock } from "./names.ts";

/** Takes the lock of a directory; null where another process has it. Rejects with the system's error. */
export async function lockDirectory(directory: string): Promise<Lock | null> {
  const path = `${directory}/lock`;
  const file = await realFileSystem.open(path, "change");
  try {
    if (tryLock(file.fd)) return { release: () => file.close(), holds: () => realFileSystem.leadsTo(path, file) };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return null;
}
