import { setTimeout as pause } from "node:timers/promises";
import { classifyError } from "@linkfence/db";

/** One try and two more: what collides three times in a row has a cause that a fourth try would meet as well. */
const MAX_TRIES = 3;
/** About the length of a transaction: long enough for the other one to finish. */
const PAUSE_MS = 20;

/**
 * Repeats work that the database did not carry out and allows to be repeated (deadlock, lock timeout, serialization).
 * Everything else is passed on at once; above all a lost connection, after which the work may have been done.
 */
export async function retryTransient<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === MAX_TRIES || classifyError(error) !== "retryable") throw error;
      // Random, so that two that collided do not meet again.
      await pause(PAUSE_MS * tries * (0.5 + Math.random()));
    }
  }
}
