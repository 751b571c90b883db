declare module "fs-native-extensions" {
  /** Takes an exclusive lock on an open file; false where another open file has it. */
  export function tryLock(fd: number): boolean;
}
