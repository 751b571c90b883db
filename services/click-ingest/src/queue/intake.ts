// The bounded queue between requests and the writer. Offering never throws and never waits for room: a submission is
// stored, or it is given back when there is no room, when its deadline passes, when nobody waits for it any more, or
// when the service stops. A click counts against the bounds until its submission ends. Beyond them the writer may hold
// one batch whose submissions were given back meanwhile.
import type { Click } from "@linkfence/contracts";
import { clickBytes } from "../domain/click.ts";
import { createSubmission, type Origin, type Outcome, type Part, type Submission } from "./submission.ts";

export type IntakeOptions = {
  maxClicks: number;
  /** Upper estimate of the waiting clicks' memory. */
  maxBytes: number;
  /** How long a submission may wait, in ms. */
  deadlineMs: number;
  /** Told of the clicks of each submission that there is room for, before they wait. */
  prepare?: (clicks: readonly Click[]) => void;
};
export type Intake = ReturnType<typeof createIntake>;

/** Creates the queue. */
export function createIntake({ maxClicks, maxBytes, deadlineMs, prepare }: IntakeOptions) {
  /** Submissions with clicks that no transaction has taken, in order of arrival. */
  const waiting = new Set<Submission>();
  let clicks = 0;
  let bytes = 0;
  let accepting = true;
  let wake: (() => void) | undefined;

  function notify(): void {
    wake?.();
    wake = undefined;
  }

  function enter(list: readonly Click[], size: number, abandoned: AbortSignal, origin: Origin): Promise<Outcome> {
    // Before anything counts: what fails here leaves nothing behind.
    prepare?.(list);
    clicks += list.length;
    bytes += size;
    return new Promise((resolve) => {
      const submission = createSubmission(list, origin, (outcome) => {
        clicks -= list.length;
        bytes -= size;
        waiting.delete(submission);
        clearTimeout(deadline);
        abandoned.removeEventListener("abort", leave);
        resolve(outcome);
      });
      const leave = () => submission.giveBack("abandoned");
      const deadline = setTimeout(() => submission.giveBack("deadline"), deadlineMs);
      abandoned.addEventListener("abort", leave, { once: true });
      waiting.add(submission);
      notify();
    });
  }

  return {
    /**
     * Queues the clicks of one request.
     * @param list at least one click
     * @param abandoned aborted when nobody waits for the outcome any more
     */
    offer(list: readonly Click[], abandoned: AbortSignal, origin: Origin): Promise<Outcome> {
      const size = list.reduce((sum, click) => sum + clickBytes(click), 0);
      if (abandoned.aborted) return Promise.resolve({ kind: "given-back", reason: "abandoned" });
      if (!accepting) return Promise.resolve({ kind: "given-back", reason: "stopping" });
      if (clicks + list.length > maxClicks || bytes + size > maxBytes)
        return Promise.resolve({ kind: "given-back", reason: "full" });
      return enter(list, size, abandoned, origin);
    },

    /** Takes up to `max` clicks, of as many submissions as it needs, in order of arrival. */
    take(max: number): Part[] {
      const parts: Part[] = [];
      let room = max;
      for (const submission of waiting) {
        if (room === 0) break;
        const part = submission.take(room);
        room -= part.length;
        parts.push({ submission, clicks: part });
        if (submission.waiting() === 0) waiting.delete(submission);
      }
      return parts;
    },

    /** Resolves with true when there is something to take, with false when there never will be again. One waiter at most. */
    async arrival(): Promise<boolean> {
      while (waiting.size === 0 && accepting) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return waiting.size > 0;
    },

    /** Takes nothing more in; what is queued stays. Calling it again changes nothing. */
    close(): void {
      accepting = false;
      notify();
    },
    isOpen: () => accepting,
    stats: () => ({ clicks, bytes }),
  };
}
