// A connection from a process to the database. What is sent may be late, lost on its way there or on its way back.
import type { Database } from "./database.ts";
import type { Dice } from "./dice.ts";
import type { Kernel } from "./kernel.ts";
import type { Process } from "./process.ts";

/** One object for all failures: an error is dear to make, and nobody asks where it comes from. */
const FAILED = new Error("the connection failed");

export type Weather = {
  /** Mean true ms of a way there or back. */
  meanMs: number;
  /** Part of all ways that take up to `slowMs`. */
  slow: number;
  slowMs: number;
  /** Part of all answers that never come. */
  loss: number;
};

export type LineOptions = {
  kernel: Kernel;
  dice: Dice;
  database: Database;
  process: Process;
  weather: Weather;
  /** By the clock of the process. */
  deadlineMs: number;
};

/** A statement that was sent; nothing of it matters any more once it is not open. */
type Sent<T> = {
  open: boolean;
  /** True ms. */
  deadline: number;
  server: number;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
};

/** Creates a connection that is there at once, and again whenever it can be. */
export function createLine({ kernel, dice, database, process, weather, deadlineMs }: LineOptions) {
  let cutUntil = 0;
  let slowUntil = 0;

  function isCut(): boolean {
    return kernel.now() < cutUntil;
  }

  /** True ms at which something that is sent now arrives. */
  function arrival(): number {
    const slow = kernel.now() < slowUntil ? 0.5 : weather.slow;
    const ms = dice.chance(slow) ? dice.between(0, weather.slowMs) : dice.delay(weather.meanMs);
    return kernel.now() + ms;
  }

  function fail<T>(sent: Sent<T>, at: number): void {
    kernel.at(at, () => {
      if (!sent.open) return;
      process.deliver(() => {
        if (sent.open) sent.reject(FAILED);
        sent.open = false;
      });
    });
  }

  function comeBack<T>(sent: Sent<T>, value: T): void {
    const back = arrival();
    if (isCut() || dice.chance(weather.loss)) fail(sent, dice.chance(0.5) ? sent.deadline : back);
    else if (back >= sent.deadline) fail(sent, sent.deadline);
    else
      kernel.at(back, () =>
        process.deliver(() => {
          if (sent.open) sent.resolve(value);
          sent.open = false;
        }),
      );
  }

  function arrive<T>(sent: Sent<T>, carryOut: (reply: (value: T) => void) => void): void {
    if (!database.isUp() || database.server() !== sent.server) {
      fail(sent, arrival());
      return;
    }
    let answered = false;
    carryOut((value) => {
      answered = true;
      comeBack(sent, value);
    });
    if (!answered) fail(sent, sent.deadline);
  }

  return {
    cut(ms: number): void {
      cutUntil = kernel.now() + ms;
    },
    slow(ms: number): void {
      slowUntil = kernel.now() + ms;
    },
    /** Sends a statement. Whether it was carried out is not known where this rejects. */
    send<T>(carryOut: (reply: (value: T) => void) => void): Promise<T> {
      return new Promise((resolve, reject) => {
        const deadline = kernel.now() + deadlineMs / process.rate;
        const sent: Sent<T> = { open: true, deadline, server: database.server(), resolve, reject };
        if (isCut() && dice.chance(0.5)) {
          fail(sent, dice.chance(0.5) ? deadline : arrival());
          return;
        }
        const at = arrival();
        if (at >= deadline) fail(sent, deadline);
        kernel.at(at, () => arrive(sent, carryOut));
      });
    },
  };
}
