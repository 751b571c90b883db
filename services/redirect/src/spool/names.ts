// Files go on without their names when somebody removes or replaces them: what is written to them then, nobody finds again.
// So it is looked every second whether the names of the account and of the lock still lead to them.
import { createOperations } from "./operations.ts";

/** Ends with its process at the latest. */
export type Lock = {
  release(): Promise<void>;
  /** Whether whoever comes next meets this lock: its file is where it was. */
  holds(): Promise<boolean>;
};

export type NamesOptions = {
  directory: string;
  lock: (directory: string) => Promise<Lock | null>;
  onTrouble: (what: string, error: unknown) => void;
};

/** @param checkAccount looks after the account; rejects with the system's error */
export function createNames(options: NamesOptions, first: Lock, checkAccount: () => Promise<void>) {
  const { directory, onTrouble } = options;
  const operations = createOperations(onTrouble);
  let lock = first;
  let isLooking = false;
  let isTaken = false;
  let lost = 0;

  async function look(): Promise<true> {
    if (!(await lock.holds())) await takeAgain();
    if (!isTaken) await checkAccount();
    return true;
  }

  async function takeAgain(): Promise<void> {
    const next = await options.lock(directory);
    lost += 1;
    isTaken = next === null;
    if (next === null) {
      return onTrouble(
        "the lock of the directory was taken away and another process has it: nothing is written there any more",
        new Error(directory),
      );
    }
    onTrouble("the lock of the directory is no longer where it was, and is taken anew", new Error(directory));
    const former = lock;
    lock = next;
    await former.release();
  }

  return {
    /** Looks in the background. */
    look(): void {
      if (isLooking || isTaken || operations.stuck()) return;
      isLooking = true;
      void operations.run("look after the directory", look()).then(() => {
        isLooking = false;
      });
    },
    /** Another process has the directory: this one must not write there. */
    areTaken: () => isTaken,
    /** How often the lock was lost. */
    lost: () => lost,
    release: () => lock.release(),
  };
}
