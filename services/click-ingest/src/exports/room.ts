/** As often as others tell how far they are: together they are beyond the bound by what they write in two of these at the most. */
const ASK_EVERY_MS = 1000;

/**
 * Keeps how many bytes a file may have, and asks again while it is written, as others grow beside it. Where no answer comes it
 * stays as it was.
 * @param first what it was at the beginning
 * @param now ms of a clock that never steps
 */
export function createRoom(first: number, ask: () => Promise<number>, now: () => number = () => performance.now()) {
  let room = first;
  let askedAt = now();

  return (): number => {
    if (now() - askedAt > ASK_EVERY_MS) {
      askedAt = now();
      ask().then(
        (found) => {
          room = found;
        },
        () => {},
      );
    }
    return room;
  };
}
