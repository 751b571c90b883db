// Who may send to the server. A driver that has no free connection would send a call behind another one, on its
// connection, where it waits for that one, be it for a lock.

/**
 * Creates the places of one pool, which are taken in the order of coming.
 * @param places calls at a time
 */
export function createPlaces(places: number) {
  let free = places;
  const waiting = new Set<() => void>();

  return {
    /** Calls `begin` when there is a place: at once, where one is free. */
    enter(begin: () => void): void {
      if (free === 0) {
        waiting.add(begin);
        return;
      }
      free -= 1;
      begin();
    },
    /** Gives up waiting. */
    quit: (begin: () => void) => void waiting.delete(begin),
    /** Gives a place back, to who has waited longest. */
    leave(): void {
      const [next] = waiting;
      if (next === undefined) {
        free += 1;
        return;
      }
      waiting.delete(next);
      next();
    },
    /** Takes everybody who waits away from these places. */
    takeWaiting(): (() => void)[] {
      const all = [...waiting];
      waiting.clear();
      return all;
    },
  };
}
