// True time, and what happens in it, in order. Nobody in the simulation reads it but the network, the database and the
// judge: processes have clocks of their own.

type Event = { at: number; order: number; act: () => void };

export type Kernel = ReturnType<typeof createKernel>;

/** Creates an empty history at 0 ms. */
export function createKernel() {
  const heap: Event[] = [];
  let now = 0;
  let orders = 0;
  let steps = 0;
  let entered = false;

  function isBefore(a: Event, b: Event): boolean {
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  }

  function push(event: Event): void {
    let place = heap.length;
    heap.push(event);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const other = heap[above] as Event;
      if (!isBefore(event, other)) break;
      heap[place] = other;
      place = above;
    }
    heap[place] = event;
  }

  function pop(): Event {
    const first = heap[0] as Event;
    const moved = heap.pop() as Event;
    if (heap.length > 0) sink(moved);
    return first;
  }

  function sink(event: Event): void {
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Event, heap[below] as Event)) below += 1;
      const other = heap[below] as Event;
      if (!isBefore(other, event)) break;
      heap[place] = other;
      place = below;
    }
    heap[place] = event;
  }

  return {
    now: () => now,
    /** Has `act` happen at that time, or now where it is past. What is planned for the same time happens in that order. */
    at(time: number, act: () => void): void {
      push({ at: Math.max(time, now), order: orders, act });
      orders += 1;
    },
    /** To be called when a process gets to run: what it awaits has to go on before anything else happens. */
    enter(): void {
      entered = true;
    },
    /**
     * Has things happen up to the first at which a process runs. The caller lets all promises go on before it calls again.
     * @returns false where nothing is left before `until`
     */
    turn(until: number): boolean {
      entered = false;
      while (!entered) {
        const next = heap[0];
        if (next === undefined || next.at > until) return false;
        pop();
        now = next.at;
        steps += 1;
        next.act();
      }
      return true;
    },
    steps: () => steps,
  };
}
