// Clicks of batches in which the database refused something, by sender. They are settled step by step, each step a few
// transactions, and senders take turns: what others send meanwhile is stored between two steps.
import type { Click } from "@linkfence/contracts";
import type { Fates, Part, Submission } from "./submission.ts";

/** A click that may be the one, and how it came, as JSON. */
export type Suspect = { click: Click; payload: string };
/** `buried`: refused, and a dead letter now. `no-room`: refused, and kept nowhere. */
export type Fate = "new" | "before" | "late" | "buried" | "no-room";
/** What became of those that were settled, and the SQLSTATE where they were refused just now. */
export type Isolated = Map<Suspect, { fate: Fate; sqlstate: string | null }>;

export type SuspectsOptions = {
  /** Settles some of the clicks of a sender, at least one, for good. */
  isolate: (sender: string, suspects: readonly Suspect[]) => Promise<Isolated>;
  /** Clicks that are given to it at once at the most. */
  stepMax: number;
};
export type Step = { inserted: number; refused: { click: Click; sqlstate: string }[] };

type Waiting = { submission: Submission; click: Click };
type Group = { sender: string; waiting: Waiting[] };

/** Creates the place where they wait. It is bounded by the intake, in whose count they stay. */
export function createSuspects({ isolate, stepMax }: SuspectsOptions) {
  const groups: Group[] = [];

  /** The group whose turn it is, less what nobody waits for any more. */
  function next(): Group | undefined {
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      group.waiting = group.waiting.filter(({ submission }) => submission.isOpen());
      if (group.waiting.length > 0) return group;
    }
    return undefined;
  }

  return {
    isEmpty: () => groups.length === 0,
    clicks: () => groups.reduce((sum, { waiting }) => sum + waiting.length, 0),
    /** Takes in the parts of one sender. */
    add(sender: string, parts: readonly Part[]): void {
      const waiting = parts.flatMap(({ submission, clicks }) => clicks.map((click) => ({ submission, click })));
      groups.push({ sender, waiting });
    },
    /** Settles some. Rejects with the database's error; the group keeps its turn then, with what is not settled. */
    async step(): Promise<Step> {
      const step: Step = { inserted: 0, refused: [] };
      const group = next();
      if (group === undefined) return step;
      const taken = group.waiting.slice(0, stepMax);
      const suspects = taken.map(({ submission, click }) => ({ click, payload: submission.origin.payloadOf(click) }));
      try {
        const settled = await isolate(group.sender, suspects);
        const left = taken.filter((waiting, index) => !settle(waiting, settled.get(suspects[index] as Suspect), step));
        group.waiting = [...left, ...group.waiting.slice(stepMax)];
        if (group.waiting.length > 0) groups.push(group);
      } catch (error) {
        groups.unshift(group);
        throw error;
      }
      return step;
    },
  };
}

/** Returns false for one that has no fate yet. */
function settle({ submission, click }: Waiting, told: { fate: Fate; sqlstate: string | null } | undefined, step: Step) {
  if (told === undefined) return false;
  const { fate, sqlstate } = told;
  if (fate === "new") step.inserted += 1;
  if (sqlstate !== null) step.refused.push({ click, sqlstate });
  submission.record(describe(fate, click));
  return true;
}

function describe(fate: Fate, click: Click): Partial<Fates> {
  switch (fate) {
    case "new":
      return { inserted: 1 };
    case "before":
      return { duplicate: 1 };
    case "late":
      return { late: [click] };
    case "buried":
      return { buried: 1 };
    case "no-room":
      return { noRoom: [click] };
  }
}
