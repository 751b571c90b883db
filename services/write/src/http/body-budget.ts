import { Problem } from "@linkfence/contracts";
import type { Request } from "express";

/**
 * Bounds the memory that request bodies may take together. A large body is many times its size while it is worked on,
 * so what does not fit is refused at once instead of being queued.
 */
export function createBodyBudget(totalBytes: number) {
  let taken = 0;
  let refused = 0;

  /** Runs work on a body of at most `limit` bytes. Rejects with `overloaded` when the budget is used up. */
  async function within<T>(request: Request, limit: number, work: () => Promise<T>): Promise<T> {
    const length = request.get("content-length") ?? "";
    const bytes = Math.min(limit, /^\d+$/.test(length) ? Number(length) : limit);
    if (taken + bytes > totalBytes) {
      refused += 1;
      throw new Problem("overloaded", "too many large requests are under way: try again");
    }
    taken += bytes;
    try {
      return await work();
    } finally {
      taken -= bytes;
    }
  }

  return { within, stats: () => ({ taken, refused }) };
}

export type BodyBudget = ReturnType<typeof createBodyBudget>;
