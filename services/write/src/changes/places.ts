import { Problem } from "@linkfence/contracts";

export type PlaceBounds = {
  /** Named where a bound is met. */
  what: string;
  /** At the most, of all owners together. */
  total: number;
  /** At the most, of one owner. */
  perOwner: number;
  /** How often each bound was met. */
  refused: { process: number; owner: number };
};

/** Bounds how many streams are open. Who does not find a place is told so at once. */
export function createPlaces({ what, total, perOwner, refused }: PlaceBounds) {
  const taken = new Map<string, number>();
  let all = 0;

  /**
   * Takes a place.
   * @returns gives it back; calling it again changes nothing
   * @throws Problem `overloaded` that names the bound
   */
  function take(owner: string): () => void {
    const own = taken.get(owner) ?? 0;
    if (own >= perOwner) {
      refused.owner += 1;
      throw new Problem("overloaded", `you have ${perOwner} ${what} open here already: close one`);
    }
    if (all >= total) {
      refused.process += 1;
      throw new Problem("overloaded", `this process has ${total} ${what} open already: try again, or poll`);
    }
    all += 1;
    taken.set(owner, own + 1);
    let given = true;
    return () => {
      if (!given) return;
      given = false;
      all -= 1;
      const left = (taken.get(owner) ?? 1) - 1;
      if (left > 0) taken.set(owner, left);
      else taken.delete(owner);
    };
  }

  return { take, count: () => all };
}
